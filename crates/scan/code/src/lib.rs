//! Programs to findings: real parsers, names resolved, rules as data.
