// SPDX-License-Identifier: Apache-2.0
//! Components of WASI preview 2 that export wasi:cli/run, and what they share with those
//! that serve HTTP.

use wasmtime::component::{Component, InstancePre, Linker, ResourceTable};
use wasmtime::{Engine, Result, Store, StoreLimits};
use wasmtime_wasi::p2::bindings::CommandPre;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::end::{End, Refused};
use crate::proxy::NoRequests;
use crate::request::Request;
use crate::{artifact, context, file_streams};

pub struct State {
    wasi: WasiCtx,
    http: WasiHttpCtx,
    hooks: NoRequests,
    table: ResourceTable,
    limits: StoreLimits,
}

impl State {
    pub fn new(wasi: WasiCtx, limits: StoreLimits) -> State {
        State {
            wasi,
            http: WasiHttpCtx::new(),
            hooks: NoRequests,
            table: ResourceTable::new(),
            limits,
        }
    }

    pub fn store(self, engine: &Engine) -> Store<State> {
        let mut store = Store::new(engine, self);
        store.limiter(|state| &mut state.limits);
        store
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl WasiHttpView for State {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView { ctx: &mut self.http, table: &mut self.table, hooks: &mut self.hooks }
    }
}

fn linker(engine: &Engine) -> Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
    linker.allow_shadowing(true);
    file_streams::add_to_linker(&mut linker)?;
    Ok(linker)
}

/// The component with its imports found. The engine's error names the one that is not.
pub fn linked(
    engine: &Engine,
    request: &Request,
) -> std::result::Result<InstancePre<State>, Refused> {
    let component: Component = artifact::component(engine, &request.artifact)?;
    linker(engine)
        .map_err(|error| Refused::System(format!("the engine's functions: {error:#}")))?
        .instantiate_pre(&component)
        .map_err(|error| {
            Refused::Missing(format!("what the component imports is not all here: {error:#}"))
        })
}

pub struct Command {
    store: Store<State>,
    ready: CommandPre<State>,
}

impl Command {
    pub fn new(engine: &Engine, request: &Request) -> std::result::Result<Command, Refused> {
        let ready = CommandPre::new(linked(engine, request)?).map_err(|error| {
            Refused::Missing(format!("the component does not export wasi:cli/run: {error:#}"))
        })?;
        let mut wasi = context::streams_and_words(request, true);
        context::add_directories(&mut wasi, request)?;
        let store = State::new(wasi.build(), context::limits(request)).store(engine);
        Ok(Command { store, ready })
    }

    pub async fn run(&mut self) -> End {
        let command = match self.ready.instantiate_async(&mut self.store).await {
            Ok(command) => command,
            Err(error) => return End::of_start(&error),
        };
        match command.wasi_cli_run().call_run(&mut self.store).await {
            Ok(result) => End::Exited(u8::from(result.is_err())),
            Err(error) => End::of_run(&error),
        }
    }
}
