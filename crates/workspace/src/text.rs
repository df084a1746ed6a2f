//! Comparing and merging texts, line by line.
