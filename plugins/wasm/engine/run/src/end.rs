// SPDX-License-Identifier: Apache-2.0
//! How a run ended or why it is none, and the text of that for C.

use std::ffi::{c_char, c_int};

use wasmtime::{Error, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

/// Of a trap's text with its backtrace, in which the names are the guest's.
const MOST_TEXT: usize = 8 << 10;

/// Why nothing was prepared.
pub enum Refused {
    Invalid(String),
    Missing(String),
    System(String),
}

impl Refused {
    /// gantry_wasm_error.
    pub fn code(&self) -> c_int {
        match self {
            Refused::Invalid(_) => 1,
            Refused::Missing(_) => 2,
            Refused::System(_) => 3,
        }
    }

    pub fn text(&self) -> &str {
        match self {
            Refused::Invalid(text) | Refused::Missing(text) | Refused::System(text) => text,
        }
    }
}

pub enum End {
    Exited(u8),
    Trapped(String),
    Failed(String),
}

impl End {
    /// Of an error that came out of the guest while it was being brought up.
    pub fn of_start(error: &Error) -> End {
        if error.downcast_ref::<I32Exit>().is_some() || error.downcast_ref::<Trap>().is_some() {
            End::of_run(error)
        } else {
            End::Failed(cut(format!("the guest cannot be brought up: {error:#}")))
        }
    }

    /// Of an error that came out of the guest's function.
    pub fn of_run(error: &Error) -> End {
        match error.downcast_ref::<I32Exit>() {
            Some(exit) => End::Exited((exit.0 & 0xff) as u8),
            None => End::Trapped(trap_text(error)),
        }
    }

    pub fn exit_code(&self) -> u32 {
        match self {
            End::Exited(code) => u32::from(*code),
            End::Trapped(_) | End::Failed(_) => 0,
        }
    }

    pub fn text(&self) -> &str {
        match self {
            End::Exited(_) => "",
            End::Trapped(text) | End::Failed(text) => text,
        }
    }
}

/// The trap in a line, then where the guest was.
pub fn trap_text(error: &Error) -> String {
    let mut text = match error.downcast_ref::<Trap>() {
        Some(trap) => trap.to_string(),
        None => error.root_cause().to_string(),
    };
    if let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() {
        text.push('\n');
        text.push_str(&backtrace.to_string());
    }
    cut(text)
}

fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MOST_TEXT));
    text
}

/// Names of the guest in a sentence of ours: nothing in them is a line or a terminal's word.
pub fn quoted(name: &str) -> String {
    let mut shown = name.escape_debug().to_string();
    shown.truncate(shown.floor_char_boundary(200));
    format!("'{shown}'")
}

/// Writes the text, cut to the room there is, and a zero byte.
///
/// # Safety
/// `to` has room for `size` bytes.
pub unsafe fn put_text(text: &str, to: *mut c_char, size: usize) {
    if size == 0 || to.is_null() {
        return;
    }
    let text = &text[..text.floor_char_boundary(size - 1)];
    // SAFETY: the text is shorter than the room.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), to.cast(), text.len());
        *to.add(text.len()) = 0;
    }
}
