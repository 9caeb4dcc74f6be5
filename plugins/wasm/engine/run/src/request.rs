// SPDX-License-Identifier: Apache-2.0
//! The request of gantry_wasm_engine.h, read once.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::end::Refused;

#[repr(C)]
pub struct RawPreopen {
    path: *const c_char,
    guest: *const c_char,
    writable: u8,
}

#[repr(C)]
pub struct RawRequest {
    artifact: c_int,
    kind: u32,
    entry: *const c_char,
    args: *const *const c_char,
    arg_count: usize,
    env: *const *const c_char,
    env_count: usize,
    preopens: *const RawPreopen,
    preopen_count: usize,
    memory_bytes: u64,
    network: u8,
    listener: c_int,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Module,
    Command,
    Proxy,
}

pub struct Preopen {
    pub path: PathBuf,
    pub guest: String,
    pub writable: bool,
}

pub struct Request {
    pub artifact: OwnedFd,
    pub kind: Kind,
    pub entry: Option<String>,
    pub args: Vec<Vec<u8>>,
    pub env: Vec<Vec<u8>>,
    pub preopens: Vec<Preopen>,
    pub memory_bytes: Option<usize>,
    pub network: bool,
    pub listener: Option<OwnedFd>,
}

/// # Safety
/// A C string, which lives for the call.
unsafe fn bytes(text: *const c_char) -> Vec<u8> {
    // SAFETY: as above.
    unsafe { CStr::from_ptr(text) }.to_bytes().to_vec()
}

/// # Safety
/// `count` C strings, which live for the call.
unsafe fn all_bytes(texts: *const *const c_char, count: usize) -> Vec<Vec<u8>> {
    // SAFETY: as above.
    (0..count).map(|i| unsafe { bytes(*texts.add(i)) }).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Request {
    /// # Safety
    /// As gantry_wasm_engine.h says of the request. The listener is taken even where
    /// nothing comes of the request.
    pub unsafe fn read(raw: &RawRequest) -> Result<Request, Refused> {
        // SAFETY: the listener is given to us.
        let listener = (raw.listener >= 0).then(|| unsafe { OwnedFd::from_raw_fd(raw.listener) });
        let kind = match raw.kind {
            0 => Kind::Module,
            1 => Kind::Command,
            2 => Kind::Proxy,
            other => return Err(Refused::Invalid(format!("there is no kind {other}"))),
        };
        if raw.artifact < 0 {
            return Err(Refused::Invalid("there is no artifact".to_string()));
        }
        // SAFETY: it is open for the call.
        let artifact = unsafe { BorrowedFd::borrow_raw(raw.artifact) }
            .try_clone_to_owned()
            .map_err(|error| Refused::System(format!("the artifact's descriptor: {error}")))?;
        // SAFETY: all that follows are C strings and their numbers.
        unsafe {
            let entry = (!raw.entry.is_null()).then(|| text(&bytes(raw.entry)));
            if entry.is_some() && kind != Kind::Module {
                return Err(Refused::Invalid(
                    "a component has no entry to choose: its world says what is run".to_string(),
                ));
            }
            let preopens = (0..raw.preopen_count).map(|i| {
                let preopen = &*raw.preopens.add(i);
                Preopen {
                    path: PathBuf::from(OsStr::from_bytes(&bytes(preopen.path))),
                    guest: text(&bytes(preopen.guest)),
                    writable: preopen.writable != 0,
                }
            });
            Ok(Request {
                artifact,
                kind,
                entry,
                args: all_bytes(raw.args, raw.arg_count),
                env: all_bytes(raw.env, raw.env_count)
                    .into_iter()
                    .filter(|each| each.contains(&b'='))
                    .collect(),
                preopens: preopens.collect(),
                memory_bytes: (raw.memory_bytes > 0)
                    .then(|| usize::try_from(raw.memory_bytes).unwrap_or(usize::MAX)),
                network: raw.network != 0,
                listener,
            })
        }
    }
}
