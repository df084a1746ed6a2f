//! One module in, what the processor runs out. Nothing of the module runs.

use std::io::Write;
use std::path::Path;

use wasmtime::Result;

use crate::engine;
use crate::program::Code;

pub fn compile(module: &Path) -> Result<()> {
    let engine = engine::engine()?;
    let code = Code::compile(&engine, module)?;
    // Now rather than at every start: whether it asks for something that nobody has.
    code.link(&engine)?;
    let mut output = std::io::stdout().lock();
    output.write_all(&code.serialize()?)?;
    output.flush()?;
    Ok(())
}
