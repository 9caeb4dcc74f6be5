// SPDX-License-Identifier: Apache-2.0
//! The C functions of gantry_wasm_compiler.h, which says what each does.

mod kind;

use std::ffi::{CString, c_char, c_int};
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::sync::OnceLock;

use kind::{Kind, kind_of};
use wasmtime::{Engine, Result};

const INVALID: c_int = 1;
const SYSTEM: c_int = 3;

/// Raised where artifacts of one engine and configuration come to differ.
const FORMAT: u32 = 1;

fn engine() -> Result<Engine> {
    Engine::new(&gantry_wasm_config::config()?)
}

fn describe() -> Result<String> {
    // In an artifact of nothing there is what the engine compares with itself: target, flags,
    // features, tunables. Keys and algorithm of the hash are fixed for a compiler of Rust.
    let empty = engine()?.precompile_module(&kind::MODULE)?;
    let mut hasher = DefaultHasher::new();
    empty.hash(&mut hasher);
    let version = gantry_wasm_config::VERSION;
    Ok(format!("wasmtime-{version}/{FORMAT}/{:016x}", hasher.finish()))
}

#[unsafe(no_mangle)]
pub extern "C" fn gantry_wasm_compiler() -> *const c_char {
    static LINE: OnceLock<CString> = OnceLock::new();
    LINE.get_or_init(|| {
        // A processor that it does not compile for: no artifact is shared with anybody.
        let line = describe()
            .unwrap_or_else(|_| format!("wasmtime-{}/unsupported", gantry_wasm_config::VERSION));
        CString::new(line).unwrap_or_default()
    })
    .as_ptr()
}

/// The artifact, or gantry_wasm_error and a sentence.
fn compile(bytes: &[u8]) -> std::result::Result<(Kind, Vec<u8>), (c_int, String)> {
    let kind = kind_of(bytes).map_err(|why| (INVALID, why))?;
    let engine =
        engine().map_err(|error| (SYSTEM, format!("the compiler does not run here: {error:#}")))?;
    let artifact = match kind {
        Kind::Module => engine.precompile_module(bytes),
        Kind::Command | Kind::Proxy => engine.precompile_component(bytes),
    };
    match artifact {
        Ok(artifact) => Ok((kind, artifact)),
        Err(error) => Err((INVALID, format!("it is not valid: {error:#}"))),
    }
}

/// # Safety
/// As gantry_wasm_compiler.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gantry_wasm_compile(
    bytes: *const u8,
    size: usize,
    output: c_int,
    kind: *mut u32,
    why: *mut c_char,
    why_size: usize,
) -> c_int {
    // SAFETY: the caller's pointers are as the header says; of nothing there may be none.
    let bytes = if size == 0 { &[] } else { unsafe { std::slice::from_raw_parts(bytes, size) } };
    let written = compile(bytes).and_then(|(found, artifact)| {
        if output < 0 {
            return Err((SYSTEM, "the artifact cannot be written: there is no output".to_string()));
        }
        // SAFETY: the descriptor is open, and stays the caller's.
        let mut file = ManuallyDrop::new(unsafe { File::from_raw_fd(output) });
        match file.write_all(&artifact) {
            Ok(()) => Ok(found),
            Err(error) => Err((SYSTEM, format!("the artifact cannot be written: {error}"))),
        }
    });
    match written {
        Ok(found) => {
            // SAFETY: as above.
            unsafe { *kind = found as u32 };
            0
        }
        Err((code, text)) => {
            // SAFETY: as above.
            unsafe { put_text(&text, why, why_size) };
            code
        }
    }
}

/// Writes the text, cut to the room there is, and a zero byte.
///
/// # Safety
/// `to` has room for `size` bytes.
unsafe fn put_text(text: &str, to: *mut c_char, size: usize) {
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
