// SPDX-License-Identifier: Apache-2.0
//! The C functions of gantry_wasm_engine.h, which says what each does.

mod artifact;
mod command;
mod context;
mod end;
mod file_streams;
mod lists;
mod module;
mod poll;
mod proxy;
mod request;
mod stdio;
mod timer;

use std::ffi::{c_char, c_int};

use end::{End, Refused, put_text};
use request::{Kind, RawRequest, Request};
use tokio::runtime::Runtime;

/// One run, prepared. Opaque to C.
pub struct Run {
    runtime: Runtime,
    guest: Guest,
}

/// That the loop takes from the kernel at once; more come with its next turn.
const MOST_EVENTS: usize = 64;

enum Guest {
    Module(Box<module::Module>),
    Command(Box<command::Command>),
    Proxy(Box<proxy::Proxy>),
}

fn prepare(request: Request) -> Result<Run, Refused> {
    // One thread, which is the guest's, too. Room for events is memory that each guest has.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_io_events_per_tick(MOST_EVENTS)
        .build()
        .map_err(|error| Refused::System(format!("the event loop cannot be made: {error}")))?;
    let engine = artifact::engine()?;
    let guest = match request.kind {
        Kind::Module => Guest::Module(Box::new(module::Module::new(&engine, &request)?)),
        Kind::Command => Guest::Command(Box::new(command::Command::new(&engine, &request)?)),
        Kind::Proxy => Guest::Proxy(Box::new(proxy::Proxy::new(&engine, request)?)),
    };
    Ok(Run { runtime, guest })
}

/// # Safety
/// As gantry_wasm_engine.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gantry_wasm_prepare(
    request: *const RawRequest,
    run: *mut *mut Run,
    why: *mut c_char,
    why_size: usize,
) -> c_int {
    // SAFETY: the caller's pointers are as the header says.
    let prepared = unsafe { Request::read(&*request) }.and_then(prepare);
    match prepared {
        Ok(prepared) => {
            // SAFETY: as above.
            unsafe { *run = Box::into_raw(Box::new(prepared)) };
            0
        }
        Err(refused) => {
            // SAFETY: as above.
            unsafe { put_text(refused.text(), why, why_size) };
            refused.code()
        }
    }
}

/// # Safety
/// As gantry_wasm_engine.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gantry_wasm_run(
    run: *mut Run,
    code: *mut u32,
    why: *mut c_char,
    why_size: usize,
) -> c_int {
    // SAFETY: it is of gantry_wasm_prepare, and given once. Never dropped: the process ends.
    let Run { runtime, guest } = Box::leak(unsafe { Box::from_raw(run) });
    let end = match guest {
        Guest::Module(module) => runtime.block_on(module.run()),
        Guest::Command(command) => runtime.block_on(command.run()),
        Guest::Proxy(proxy) => runtime.block_on(proxy.run()),
    };
    // SAFETY: the caller's pointers are as the header says.
    unsafe {
        *code = end.exit_code();
        put_text(end.text(), why, why_size);
    }
    match end {
        End::Exited(_) => 0,
        End::Trapped(_) => 1,
        End::Failed(_) => 2,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn gantry_wasm_engine() -> *const c_char {
    c"wasmtime 48.0.8".as_ptr()
}
