// SPDX-License-Identifier: Apache-2.0
//! What artifacts are made for and loaded with: the compiler and the engine both take this,
//! since an artifact of another configuration is refused.

use wasmtime::{Config, ModuleVersionStrategy, Result};

/// Cargo.toml asks for this version and no other.
pub const VERSION: &str = "48.0.8";

/// With what the guest is given by the features of the crate alone: no threads, no garbage
/// collection, no async components.
pub fn config() -> Result<Config> {
    let mut config = Config::new();
    config.gc_support(false);
    config.concurrency_support(false);
    // The whole of what 32 bits can address, and a guard behind it: no access is checked.
    config.memory_reservation(4 << 30);
    config.memory_guard_size(32 << 20);
    // The guest has a stack of its own, of which host calls get what is left.
    config.async_stack_size(2 << 20);
    config.max_wasm_stack(512 << 10);
    // A backtrace takes names out of the guest's own name section.
    config.debug_symbols(false);
    config.generate_address_map(true);
    // Patch levels fix the compiler: the code of an earlier one is not to be run.
    config.module_version(ModuleVersionStrategy::Custom(VERSION.to_string()))?;
    Ok(config)
}
