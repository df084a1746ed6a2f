//! In a network of its own, turned to the gate by the kernel.
