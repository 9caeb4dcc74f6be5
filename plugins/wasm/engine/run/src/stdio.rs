// SPDX-License-Identifier: Apache-2.0
//! The descriptors 0, 1 and 2 as the guest's streams, read and written in its thread. Their
//! flags, which they share with others, stay as they are.

use std::io;
use std::os::fd::RawFd;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest};
use wasmtime_wasi::cli::{IsTerminal, StdinStream, StdoutStream};
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

use crate::request::Kind;

/// Of one read, and of one write.
const MOST_AT_ONCE: usize = 64 << 10;

/// Whether what is waited for is there, for at most `timeout` ms; -1: for as long as it takes.
fn is_ready(descriptor: RawFd, events: i16, timeout: i32) -> bool {
    let mut asked = libc::pollfd { fd: descriptor, events, revents: 0 };
    // SAFETY: one structure, as said.
    unsafe { libc::poll(&raw mut asked, 1, timeout) > 0 }
}

fn is_terminal(descriptor: RawFd) -> bool {
    // SAFETY: takes a number alone.
    unsafe { libc::isatty(descriptor) == 1 }
}

/// Standard input. All streams of it are one.
#[derive(Clone, Default)]
pub struct Stdin {
    // None within: a file or a device that is always ready, and cannot be watched.
    watch: Arc<OnceLock<Option<AsyncFd<RawFd>>>>,
}

impl Stdin {
    /// To be called in the event loop.
    fn watch(&self) -> Option<&AsyncFd<RawFd>> {
        // SAFETY: descriptor 0 is open, or refused, and nobody closes it while the guest runs.
        let watched = || unsafe { AsyncFd::register_with_interest(0, Interest::READABLE) }.ok();
        self.watch.get_or_init(watched).as_ref()
    }
}

impl IsTerminal for Stdin {
    fn is_terminal(&self) -> bool {
        is_terminal(0)
    }
}

impl StdinStream for Stdin {
    fn p2_stream(&self) -> Box<dyn InputStream> {
        Box::new(self.clone())
    }

    // What only preview 3 asks for, which is not in this build.
    fn async_stream(&self) -> Box<dyn AsyncRead + Send + Sync> {
        Box::new(tokio::io::empty())
    }
}

impl InputStream for Stdin {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        if size == 0 || (self.watch().is_some() && !is_ready(0, libc::POLLIN, 0)) {
            return Ok(Bytes::new());
        }
        let mut bytes = vec![0; size.min(MOST_AT_ONCE)];
        // SAFETY: room for as many bytes as are asked for.
        let got = unsafe { libc::read(0, bytes.as_mut_ptr().cast(), bytes.len()) };
        match usize::try_from(got) {
            Ok(0) => Err(StreamError::Closed),
            Ok(got) => {
                bytes.truncate(got);
                Ok(bytes.into())
            }
            Err(_) => {
                let error = io::Error::last_os_error();
                match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(Bytes::new()),
                    _ => Err(StreamError::LastOperationFailed(error.into())),
                }
            }
        }
    }
}

#[async_trait::async_trait]
impl Pollable for Stdin {
    async fn ready(&mut self) {
        let Some(watch) = self.watch() else { return };
        while let Ok(mut guard) = watch.readable().await {
            // Others may have read what there was.
            if is_ready(0, libc::POLLIN, 0) {
                return;
            }
            guard.clear_ready();
        }
    }
}

/// Standard output or error. A write ends when all is written: whoever does not read holds
/// the guest up, as with any process.
#[derive(Clone, Copy)]
pub struct Output {
    descriptor: RawFd,
    /// Whose it is.
    kind: Kind,
}

impl Output {
    pub fn stdout(kind: Kind) -> Output {
        Output { descriptor: 1, kind }
    }

    pub fn stderr(kind: Kind) -> Output {
        Output { descriptor: 2, kind }
    }

    /// Where nobody reads any more a component's stream is closed, of which the engine would make
    /// EIO for a module; of the error itself it makes EPIPE.
    fn failed(self, error: io::Error) -> StreamError {
        match error.kind() {
            io::ErrorKind::BrokenPipe if self.kind != Kind::Module => StreamError::Closed,
            _ => StreamError::LastOperationFailed(error.into()),
        }
    }

    pub fn write_whole(self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            // SAFETY: the bytes and their number.
            let put = unsafe { libc::write(self.descriptor, bytes.as_ptr().cast(), bytes.len()) };
            match usize::try_from(put) {
                Ok(put) => bytes = &bytes[put..],
                Err(_) => {
                    let error = io::Error::last_os_error();
                    match error.kind() {
                        io::ErrorKind::Interrupted => {}
                        // Somebody else made it so.
                        io::ErrorKind::WouldBlock => {
                            is_ready(self.descriptor, libc::POLLOUT, -1);
                        }
                        _ => return Err(error),
                    }
                }
            }
        }
        Ok(())
    }
}

impl IsTerminal for Output {
    fn is_terminal(&self) -> bool {
        is_terminal(self.descriptor)
    }
}

impl StdoutStream for Output {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(*self)
    }

    // What only preview 3 asks for, which is not in this build.
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }
}

impl OutputStream for Output {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.write_whole(&bytes).map_err(|error| self.failed(error))
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(MOST_AT_ONCE)
    }
}

#[async_trait::async_trait]
impl Pollable for Output {
    async fn ready(&mut self) {}
}
