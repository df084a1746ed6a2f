//! The engine, set up the same wherever something is compiled or run: only then does the one fit the other.

use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Result};

/// What a module may use of the native stack. Interpreters nest deeply.
const STACK: usize = 8 << 20;
/// With room for what is called from there.
const FIBRE: usize = STACK + (2 << 20);
/// Entries of one table: interpreters have some ten thousand.
const TABLE: usize = 1 << 20;
/// As much as a 32-bit memory can be.
const MEMORY: usize = 4 << 30;

/// How many of each kind there may be at once, whoever has them.
const COMPONENTS: u32 = 8;
const INSTANCES: u32 = 128;
const MEMORIES: u32 = 32;
const TABLES: u32 = 128;

pub fn engine() -> Result<Engine> {
    let mut config = Config::new();
    // Whoever waits for a module can always take its turn away, even in a loop without any call.
    config.epoch_interruption(true);
    config.max_wasm_stack(STACK);
    config.async_stack_size(FIBRE);
    // For debuggers of the host alone.
    config.native_unwind_info(false);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool()));
    Engine::new(&config)
}

/// Room is set aside once; an instance then takes some microseconds, and what it wrote is thrown away page by page.
fn pool() -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(COMPONENTS)
        .total_core_instances(INSTANCES)
        .max_core_instances_per_component(INSTANCES)
        .total_memories(MEMORIES)
        .max_memories_per_module(MEMORIES)
        .max_memories_per_component(MEMORIES)
        .max_memory_size(MEMORY)
        .total_tables(TABLES)
        .max_tables_per_module(TABLES)
        .max_tables_per_component(TABLES)
        .table_elements(TABLE)
        .total_stacks(COMPONENTS)
        // Kept and wiped rather than given back: page faults cost more than that.
        .linear_memory_keep_resident(1 << 20)
        .table_keep_resident(64 << 10)
        .async_stack_keep_resident(64 << 10)
        .max_unused_warm_slots(MEMORIES);
    pool
}

/// For whoever compares this program with what it made.
pub fn version() -> String {
    format!("belljar-wasm {} wasmtime 48", env!("CARGO_PKG_VERSION"))
}
