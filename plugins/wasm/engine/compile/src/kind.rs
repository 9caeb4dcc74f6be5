// SPDX-License-Identifier: Apache-2.0
//! What a file is, by its header and, of a component, by what it exports.

use wasmparser::{Parser, Payload};

/// gantry_wasm_kind.
#[derive(Clone, Copy)]
pub enum Kind {
    Module = 0,
    Command = 1,
    Proxy = 2,
}

/// What a module begins with, and an empty one is.
pub const MODULE: [u8; 8] = *b"\0asm\x01\0\0\0";
const COMPONENT: [u8; 8] = *b"\0asm\x0d\0\x01\0";

pub fn kind_of(bytes: &[u8]) -> Result<Kind, String> {
    match bytes.first_chunk::<8>() {
        Some(&MODULE) => Ok(Kind::Module),
        Some(&COMPONENT) => component_kind(bytes),
        Some([0, b'a', b's', b'm', version @ ..]) => {
            let version: Vec<String> = version.iter().map(|byte| format!("{byte:02x}")).collect();
            Err(format!(
                "it is WebAssembly of version {}, and modules of 01 00 00 00 and components of 0d 00 01 00 are run",
                version.join(" ")
            ))
        }
        _ => Err("it does not begin as a WebAssembly module or component does".to_string()),
    }
}

/// Exports are looked for at the outermost level only: the components within are private.
fn component_kind(bytes: &[u8]) -> Result<Kind, String> {
    let mut depth = 0u32;
    let mut command = false;
    let mut proxy = false;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(|error| format!("it is not valid: {error}"))? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentExportSection(exports) if depth == 0 => {
                for export in exports {
                    let export = export.map_err(|error| format!("it is not valid: {error}"))?;
                    command |= is_interface(export.name.name, "wasi:cli/run");
                    proxy |= is_interface(export.name.name, "wasi:http/incoming-handler");
                }
            }
            _ => {}
        }
    }
    match (command, proxy) {
        (true, _) => Ok(Kind::Command),
        (false, true) => Ok(Kind::Proxy),
        (false, false) => Err(
            "the component exports neither wasi:cli/run nor wasi:http/incoming-handler: there is nothing to run"
                .to_string(),
        ),
    }
}

/// Of any version of preview 2.
fn is_interface(name: &str, interface: &str) -> bool {
    name.strip_prefix(interface).is_some_and(|rest| rest.starts_with("@0.2."))
}
