//! `cargo xtask bench backends`: each kind of isolation, beside what it is made of. A new one is a line in the list.

mod container;
mod gvisor;
mod wasm;

use super::field::Field;
use super::samples::{Samples, Table};
use super::{Wish, report};

/// What a section may take.
pub struct Amounts {
    pub warm: usize,
    pub slow: usize,
    pub starts: usize,
}

type Section = fn(&Field, &Amounts, &mut Samples) -> Result<Vec<Table>, String>;
const SECTIONS: &[Section] = &[wasm::measure, gvisor::measure, container::measure];

pub fn backends(flags: &[&str]) -> Result<(), String> {
    let Wish { quick, markdown, runs } = Wish::read("backends", flags)?;
    let mut amounts = match quick {
        true => Amounts { warm: 100, slow: 10, starts: 5 },
        false => Amounts { warm: 2000, slow: 200, starts: 100 },
    };
    amounts.starts = runs.unwrap_or(amounts.starts);
    crate::release::everything()?;
    let field = Field::make()?;
    let mut samples = Samples::open("backends")?;
    let mut tables = Vec::new();
    for section in SECTIONS {
        tables.extend(section(&field, &amounts, &mut samples)?);
    }
    report(tables, quick, markdown, &samples);
    Ok(())
}
