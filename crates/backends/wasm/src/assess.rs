//! How well each wall is held: all of native's around the worker, and the module's own before them.

use model::{Enforcement, Held, Wall};

pub fn assess(native: Enforcement) -> Enforcement {
    let walls = native.walls.into_iter().map(|mut holding| {
        let first = match holding.wall {
            Wall::Files => "folders opened for the module; around it ",
            Wall::Network => "no sockets but those of the grant; around it ",
            Wall::SystemCalls => "a module makes none; for the worker ",
            Wall::Memory => "a limit on all memories and tables; around it ",
            _ => "",
        };
        if holding.held == Held::Fully {
            holding.by.insert_str(0, first);
        }
        holding
    });
    Enforcement { walls: walls.collect() }
}
