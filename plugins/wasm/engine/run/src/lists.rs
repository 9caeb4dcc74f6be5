// SPDX-License-Identifier: Apache-2.0
//! Arguments and environment of modules as the bytes they are: the engine's own functions
//! know only UTF-8.

use std::sync::Arc;

use wasmtime::{Caller, Extern, Linker, Result};

use crate::module::State;

const SUCCESS: i32 = 0;
const FAULT: i32 = 21;
const OVERFLOW: i32 = 61;

/// Each without its zero byte.
pub type List = Arc<Vec<Vec<u8>>>;

/// The functions that replace those of the linker, which is to allow that.
pub fn add_to_linker(linker: &mut Linker<State>) -> Result<()> {
    const WASI: &str = "wasi_snapshot_preview1";
    linker.func_wrap(
        WASI,
        "args_sizes_get",
        |mut caller: Caller<'_, State>, count: u32, size: u32| {
            let list = caller.data().args.clone();
            code(put_sizes(&mut caller, &list, count, size))
        },
    )?;
    linker.func_wrap(
        WASI,
        "args_get",
        |mut caller: Caller<'_, State>, table: u32, bytes: u32| {
            let list = caller.data().args.clone();
            code(put_list(&mut caller, &list, table, bytes))
        },
    )?;
    linker.func_wrap(
        WASI,
        "environ_sizes_get",
        |mut caller: Caller<'_, State>, count: u32, size: u32| {
            let list = caller.data().env.clone();
            code(put_sizes(&mut caller, &list, count, size))
        },
    )?;
    linker.func_wrap(
        WASI,
        "environ_get",
        |mut caller: Caller<'_, State>, table: u32, bytes: u32| {
            let list = caller.data().env.clone();
            code(put_list(&mut caller, &list, table, bytes))
        },
    )?;
    Ok(())
}

fn code(result: std::result::Result<(), i32>) -> i32 {
    match result {
        Ok(()) => SUCCESS,
        Err(code) => code,
    }
}

/// Writes into the guest's memory, all of it or nothing.
fn put(caller: &mut Caller<'_, State>, at: u32, bytes: &[u8]) -> std::result::Result<(), i32> {
    let Some(Extern::Memory(memory)) = caller.get_export("memory") else {
        return Err(FAULT);
    };
    memory.write(caller, at as usize, bytes).map_err(|_| FAULT)
}

fn put_sizes(
    caller: &mut Caller<'_, State>,
    list: &List,
    count: u32,
    size: u32,
) -> std::result::Result<(), i32> {
    let bytes: usize = list.iter().map(|each| each.len() + 1).sum();
    let bytes = u32::try_from(bytes).map_err(|_| OVERFLOW)?;
    let number = u32::try_from(list.len()).map_err(|_| OVERFLOW)?;
    put(caller, count, &number.to_le_bytes())?;
    put(caller, size, &bytes.to_le_bytes())
}

fn put_list(
    caller: &mut Caller<'_, State>,
    list: &List,
    mut table: u32,
    mut bytes: u32,
) -> std::result::Result<(), i32> {
    for each in list.iter() {
        put(caller, table, &bytes.to_le_bytes())?;
        put(caller, bytes, each)?;
        let end =
            u32::try_from(each.len()).ok().and_then(|size| bytes.checked_add(size)).ok_or(FAULT)?;
        put(caller, end, &[0])?;
        bytes = end.checked_add(1).ok_or(FAULT)?;
        table = table.checked_add(4).ok_or(FAULT)?;
    }
    Ok(())
}
