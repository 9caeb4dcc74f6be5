// SPDX-License-Identifier: Apache-2.0
//! Artifacts: machine code, which is run as it is, and mapped where it can be so that all
//! containers of one share it.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};

use wasmtime::component::Component;
use wasmtime::{Engine, Error, Module};

use crate::end::Refused;

const PROC_SUPER_MAGIC: i64 = 0x9fa0;

pub fn engine() -> Result<Engine, Refused> {
    gantry_wasm_config::config()
        .and_then(|config| Engine::new(&config))
        .map_err(|error| Refused::System(format!("the engine does not run here: {error:#}")))
}

fn refused(error: Error) -> Refused {
    Refused::Invalid(format!("the artifact cannot be loaded: {error:#}"))
}

pub fn module(engine: &Engine, artifact: &OwnedFd) -> Result<Module, Refused> {
    let file = artifact
        .try_clone()
        .map_err(|error| Refused::System(format!("the artifact's descriptor: {error}")))?;
    // SAFETY: the caller answers for what is in it and that it never changes.
    unsafe { Module::deserialize_open_file(engine, File::from(file)) }.map_err(refused)
}

/// Of components there is no form that takes an open file.
pub fn component(engine: &Engine, artifact: &OwnedFd) -> Result<Component, Refused> {
    let loaded = if proc_is_the_kernels() {
        // SAFETY: as above; the path is the kernel's name for this very file.
        unsafe {
            Component::deserialize_file(engine, format!("/proc/self/fd/{}", artifact.as_raw_fd()))
        }
    } else {
        let mut bytes = Vec::new();
        artifact
            .try_clone()
            .map(File::from)
            .and_then(|mut file| file.read_to_end(&mut bytes))
            .map_err(|error| Refused::System(format!("the artifact cannot be read: {error}")))?;
        // SAFETY: as above.
        unsafe { Component::deserialize(engine, bytes) }
    };
    loaded.map_err(refused)
}

/// In a container's root /proc may be a folder of the image, whose files are not artifacts.
fn proc_is_the_kernels() -> bool {
    // SAFETY: a structure of plain numbers.
    let mut about: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: a C string and room for the answer.
    let failed = unsafe { libc::statfs(c"/proc/self/fd".as_ptr(), &raw mut about) };
    failed == 0 && about.f_type == PROC_SUPER_MAGIC
}
