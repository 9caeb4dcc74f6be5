// SPDX-License-Identifier: Apache-2.0
//! Streams of files, of components. What a guest reads or writes without waiting the engine does in
//! another thread, of which this process may have none; what it waits for is done in the guest's.
//! So here the former is done as the latter is, and a file is always ready.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use wasmtime::component::{Linker, Resource};
use wasmtime::{Result, StoreContextMut};
use wasmtime_wasi::WasiView;
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemView};
use wasmtime_wasi::p2::bindings::filesystem::types::{ErrorCode, HostDescriptor};
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, FsResult, InputStream, OutputStream, Pollable, StreamError,
    StreamResult,
};

use crate::command::State;

/// With the version of the engine's own: what components ask for by an older one is this, too.
const INTERFACE: &str = "wasi:filesystem/types@0.2.12";

type Answer<T> = Result<(std::result::Result<Resource<T>, ErrorCode>,)>;

/// The functions that replace those of the linker, which is to allow that.
pub fn add_to_linker(linker: &mut Linker<State>) -> Result<()> {
    let mut interface = linker.instance(INTERFACE)?;
    interface.func_wrap(
        "[method]descriptor.read-via-stream",
        |mut store: StoreContextMut<'_, State>, (file, at): (Resource<Descriptor>, u64)| {
            let made = store.data_mut().filesystem().read_via_stream(file, at);
            replaced(store.data_mut(), made, |stream| -> DynInputStream { Box::new(Here(stream)) })
        },
    )?;
    interface.func_wrap(
        "[method]descriptor.write-via-stream",
        |mut store: StoreContextMut<'_, State>, (file, at): (Resource<Descriptor>, u64)| {
            let made = store.data_mut().filesystem().write_via_stream(file, at);
            replaced(store.data_mut(), made, |stream| -> DynOutputStream { Box::new(Here(stream)) })
        },
    )?;
    interface.func_wrap(
        "[method]descriptor.append-via-stream",
        |mut store: StoreContextMut<'_, State>, (file,): (Resource<Descriptor>,)| {
            let made = store.data_mut().filesystem().append_via_stream(file);
            replaced(store.data_mut(), made, |stream| -> DynOutputStream { Box::new(Here(stream)) })
        },
    )
}

fn replaced<T: Send + 'static>(
    state: &mut State,
    made: FsResult<Resource<T>>,
    by: impl FnOnce(T) -> T,
) -> Answer<T> {
    match made {
        Ok(made) => {
            let table = state.ctx().table;
            let stream = table.delete(made)?;
            Ok((Ok(table.push(by(stream))?),))
        }
        Err(error) => Ok((Err(error.downcast()?),)),
    }
}

/// A stream of a file, done in the thread that it is called in.
struct Here<T>(T);

#[async_trait::async_trait]
impl<T: Send + 'static> Pollable for Here<T> {
    async fn ready(&mut self) {}
}

#[async_trait::async_trait]
impl InputStream for Here<DynInputStream> {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        // Of which the engine would make the file's end.
        if size == 0 {
            return Ok(Bytes::new());
        }
        at_once(self.0.blocking_read(size))
    }
}

#[async_trait::async_trait]
impl OutputStream for Here<DynOutputStream> {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        at_once(self.0.blocking_write_and_flush(bytes))
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.0.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.0.check_write()
    }
}

/// What the engine may do in this thread is done when it is asked for the first time.
fn at_once<T>(call: impl Future<Output = StreamResult<T>>) -> StreamResult<T> {
    match pin!(call).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => Err(StreamError::trap("a file is read or written in another thread")),
    }
}
