// SPDX-License-Identifier: Apache-2.0
//! Core modules with WASI preview 1.

use std::sync::Arc;

use wasmtime::{
    Engine, Error, ExternType, Instance, InstancePre, Linker, Result, Store, StoreLimits,
    UnknownImportError, ValType,
};
use wasmtime_wasi::I32Exit;
use wasmtime_wasi::p1::{self, WasiP1Ctx};

use crate::end::{End, Refused, quoted};
use crate::lists::List;
use crate::request::Request;
use crate::{artifact, context, lists, poll};

const START: &str = "_start";
const INITIALIZE: &str = "_initialize";
/// Of the functions that a module has in place of the one that was asked for.
const MOST_NAMED: usize = 10;

pub struct State {
    pub wasi: WasiP1Ctx,
    limits: StoreLimits,
    pub args: List,
    pub env: List,
}

#[derive(Clone, Copy)]
enum Returns {
    Nothing,
    Code,
}

pub struct Module {
    store: Store<State>,
    ready: InstancePre<State>,
    entry: String,
    returns: Returns,
    initialize: bool,
}

impl Module {
    pub fn new(engine: &Engine, request: &Request) -> std::result::Result<Module, Refused> {
        let module = artifact::module(engine, &request.artifact)?;
        let entry = request.entry.clone().unwrap_or_else(|| START.to_string());
        let returns = find_entry(&module, &entry)?;
        let initialize = entry != START
            && entry != INITIALIZE
            && module.get_export(INITIALIZE).as_ref().and_then(runnable).is_some();
        let ready = linker(engine)
            .map_err(|error| Refused::System(format!("the engine's functions: {error:#}")))?
            .instantiate_pre(&module)
            .map_err(|error| missing_import(&error))?;
        let mut wasi = context::streams_and_words(request, true);
        context::add_directories(&mut wasi, request)?;
        let state = State {
            wasi: wasi.build_p1(),
            limits: context::limits(request),
            args: Arc::new(request.args.clone()),
            env: Arc::new(request.env.clone()),
        };
        let mut store = Store::new(engine, state);
        store.limiter(|state| &mut state.limits);
        Ok(Module { store, ready, entry, returns, initialize })
    }

    pub async fn run(&mut self) -> End {
        let instance = match self.ready.instantiate_async(&mut self.store).await {
            Ok(instance) => instance,
            Err(error) => return End::of_start(&error),
        };
        match self.call(&instance).await {
            Ok(code) => End::Exited(code),
            Err(error) => End::of_run(&error),
        }
    }

    async fn call(&mut self, instance: &Instance) -> Result<u8> {
        let store = &mut self.store;
        if self.initialize {
            instance
                .get_typed_func::<(), ()>(&mut *store, INITIALIZE)?
                .call_async(&mut *store, ())
                .await?;
        }
        match self.returns {
            Returns::Nothing => {
                let entry = instance.get_typed_func::<(), ()>(&mut *store, &self.entry)?;
                entry.call_async(store, ()).await?;
                Ok(0)
            }
            Returns::Code => {
                let entry = instance.get_typed_func::<(), i32>(&mut *store, &self.entry)?;
                Ok((entry.call_async(store, ()).await? & 0xff) as u8)
            }
        }
    }
}

fn linker(engine: &Engine) -> Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    p1::add_to_linker_async(&mut linker, |state: &mut State| &mut state.wasi)?;
    linker.allow_shadowing(true);
    // The engine's own knows no code above 125.
    linker.func_wrap("wasi_snapshot_preview1", "proc_exit", |code: i32| -> Result<()> {
        Err(Error::from(I32Exit(code & 0xff)))
    })?;
    lists::add_to_linker(&mut linker)?;
    poll::add_to_linker(&mut linker)?;
    Ok(linker)
}

/// What it returns, where it is a function that can be an entry.
fn runnable(export: &ExternType) -> Option<Returns> {
    let function = export.func()?;
    if function.params().len() != 0 {
        return None;
    }
    let results: Vec<ValType> = function.results().collect();
    match results.as_slice() {
        [] => Some(Returns::Nothing),
        [ValType::I32] => Some(Returns::Code),
        _ => None,
    }
}

fn find_entry(module: &wasmtime::Module, entry: &str) -> std::result::Result<Returns, Refused> {
    let export = module.get_export(entry);
    if let Some(returns) = export.as_ref().and_then(runnable) {
        return Ok(returns);
    }
    let name = quoted(entry);
    let wrong = match export {
        Some(_) => format!(
            "the module's {name} is no function without parameters that returns nothing or an i32"
        ),
        None => format!("the module exports no function {name}"),
    };
    let mut others = module.exports().filter(|export| runnable(&export.ty()).is_some());
    let named: Vec<String> =
        others.by_ref().take(MOST_NAMED).map(|export| quoted(export.name())).collect();
    let more = match others.count() {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    Err(Refused::Missing(match named.as_slice() {
        [] => format!("{wrong}, and none that could be run"),
        named => format!("{wrong}; what can be run is {}{more}", named.join(", ")),
    }))
}

fn missing_import(error: &Error) -> Refused {
    Refused::Missing(match error.downcast_ref::<UnknownImportError>() {
        Some(import) => format!(
            "the module imports {} {}: nothing here provides it",
            quoted(import.module()),
            quoted(import.name())
        ),
        None => format!("the module's imports are not what is provided here: {error:#}"),
    })
}
