//! A change as a unified patch that `git apply` and `patch` accept.
