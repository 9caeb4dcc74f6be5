// SPDX-License-Identifier: Apache-2.0
//! componentize command|proxy|sockets MODULE COMPONENT: makes a component of a module. A command is a
//! module of preview 1 with the adapter that Wasmtime publishes for that.

use std::env;
use std::error::Error;
use std::fs;

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER,
};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

const IO: &str = include_str!("../wit/io.wit");
const HTTP: &str = include_str!("../wit/http.wit");
const SOCKETS: &str = include_str!("../wit/sockets.wit");
const CLI: &str = include_str!("../wit/cli.wit");

fn command(module: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    Ok(ComponentEncoder::default()
        .module(module)?
        .adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER)?
        .validate(true)
        .encode()?)
}

/// The world is in the last of the packages.
fn of_world(
    mut module: Vec<u8>,
    world: &str,
    packages: &[(&str, &str)],
) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut resolve = Resolve::default();
    let mut last = None;
    for (name, text) in packages {
        last = Some(resolve.push_str(name, text)?);
    }
    let world = resolve.select_world(&[last.ok_or("no package")?], Some(world))?;
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
    Ok(ComponentEncoder::default().module(&module)?.validate(true).encode()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().collect();
    let [_, kind, module, component] = args.as_slice() else {
        return Err("usage: componentize command|proxy|sockets MODULE COMPONENT".into());
    };
    let bytes = fs::read(module)?;
    let made = match kind.as_str() {
        "command" => command(&bytes)?,
        "proxy" => of_world(bytes, "proxy", &[("io.wit", IO), ("http.wit", HTTP)])?,
        "sockets" => of_world(bytes, "sockets", &[("sockets.wit", SOCKETS), ("cli.wit", CLI)])?,
        _ => return Err(format!("there is no kind '{kind}'").into()),
    };
    fs::write(component, made)?;
    Ok(())
}
