//! What the worker is told, compared with what it was told before.
