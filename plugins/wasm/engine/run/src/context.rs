// SPDX-License-Identifier: Apache-2.0
//! What of the world a guest is given.

use wasmtime::{StoreLimits, StoreLimitsBuilder};
use wasmtime_wasi::{FsPerms, WasiCtxBuilder};

use crate::end::{Refused, quoted};
use crate::request::Request;
use crate::stdio::{Output, Stdin};

/// Streams, arguments, environment and network, without directories. Files and clocks are
/// waited for in this thread: it is the guest's own.
pub fn streams_and_words(request: &Request, stdin: bool) -> WasiCtxBuilder {
    let mut builder = WasiCtxBuilder::new();
    builder.allow_blocking_current_thread(true);
    if stdin {
        builder.stdin(Stdin::default());
    }
    builder.stdout(Output::stdout(request.kind)).stderr(Output::stderr(request.kind));
    for arg in &request.args {
        builder.arg(String::from_utf8_lossy(arg));
    }
    for each in &request.env {
        let text = String::from_utf8_lossy(each);
        if let Some((name, value)) = text.split_once('=') {
            builder.env(name, value);
        }
    }
    builder.allow_tcp(request.network).allow_udp(request.network);
    // Names are not looked up: that needs libraries of the host in this process.
    builder.allow_ip_name_lookup(false);
    if request.network {
        builder.inherit_network();
    }
    builder
}

pub fn add_directories(builder: &mut WasiCtxBuilder, request: &Request) -> Result<(), Refused> {
    for preopen in &request.preopens {
        let rights = if preopen.writable { FsPerms::ReadWrite } else { FsPerms::ReadOnly };
        builder.preopened_dir(&preopen.path, &preopen.guest, rights).map_err(|error| {
            let path = quoted(&preopen.path.to_string_lossy());
            Refused::System(format!("the directory {path} cannot be opened: {error:#}"))
        })?;
    }
    Ok(())
}

pub fn limits(request: &Request) -> StoreLimits {
    let builder = StoreLimitsBuilder::new();
    match request.memory_bytes {
        Some(most) => builder.memory_size(most).build(),
        None => builder.build(),
    }
}
