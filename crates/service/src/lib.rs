//! Jobs of many tenants, each carried out by a process of its own: what has threads hands them over, and never forks.
//! See docs/decisions/0017-the-service.md.

mod branches;
mod carrier;
mod files;
pub mod job;
mod languages;
mod launcher;
mod pool;
mod ready;
mod recorded;
mod screen;
mod task;
mod templates;
mod traffic;
mod usher;
mod wish;

pub use job::{Answer, Contents, Job, Said, Setting, Task};
pub use languages::OfTheHost;
pub use launcher::{Interpreter, Launched, Maker, Means, Warms, launch};
pub use pool::{Lost, Pool, Running, Standby, Streams};
pub use screen::{Screen, Size};
pub use usher::Asking;
pub use wish::Wish;
