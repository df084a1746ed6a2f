//! Secrets in text: known formats, exact values, a stream without them.
