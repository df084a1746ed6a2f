//! Who asks, as whoever let them in says; and when they may begin.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use service::Setting;
use tokio::sync::watch;

use crate::said::Failure;

/// Comes with every request: of an HTTP request by its token, of standard input by whoever started the program.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The tenant and the token: what one began, nobody else goes on with.
    pub key: String,
    pub tenant: String,
    pub setting: Setting,
    pub may: May,
    /// Whether anybody is there, where that can't be told by the call itself.
    pub presence: Option<Arc<Presence>>,
}

/// As the scopes of tokens.
#[derive(Clone, Copy, Debug)]
pub struct May {
    pub run: bool,
    pub files: bool,
    pub read: bool,
}

/// What a tool needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    Run,
    Files,
    Read,
}

impl Caller {
    pub fn needs(&self, needs: Needs) -> Result<(), Failure> {
        let (has, name) = match needs {
            Needs::Run => (self.may.run, "run"),
            Needs::Files => (self.may.files, "files"),
            Needs::Read => (self.may.read, "read"),
        };
        if has {
            return Ok(());
        }
        Err(Failure::new("scope", format!("this token does not have the scope `{name}`"))
            .rule(format!("token.{name}"))
            .fix(format!("a person makes one that has it: `belljar token create --scopes {name}`")))
    }
}

/// Nobody listens to a session that somebody listened to: its calls go on for so long, and are ended then.
const LINGER: Duration = Duration::from_secs(10);

/// How many streams of a session somebody listens to. An older client that loses one comes back for the rest; one that is gone
/// has none.
#[derive(Debug, Default)]
pub struct Presence(watch::Sender<usize>);

/// Somebody listens as long as this is kept.
pub struct Listens(Arc<Presence>);

impl Presence {
    pub fn listens(self: &Arc<Presence>) -> Listens {
        self.0.send_modify(|count| *count += 1);
        Listens(self.clone())
    }

    /// Comes back when nobody has listened for a while.
    pub async fn gone(&self) {
        let mut count = self.0.subscribe();
        loop {
            // Neither can fail: whoever sends is ourselves.
            drop(count.wait_for(|count| *count == 0).await);
            if tokio::time::timeout(LINGER, count.wait_for(|count| *count > 0)).await.is_err() {
                return;
            }
        }
    }
}

impl Drop for Listens {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// As long as it is kept, a job counts.
pub type Place = Box<dyn Send>;

/// Says when a job may begin.
pub trait Admission: Send + Sync {
    fn enter<'a>(&'a self, caller: &'a Caller) -> Pin<Box<dyn Future<Output = Result<Place, Failure>> + Send + 'a>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_back_in_time_was_never_gone() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let presence = Arc::new(Presence::default());
            let first = presence.listens();
            let gone = presence.gone();
            let mut gone = std::pin::pin!(gone);
            let soon = Duration::from_millis(5);
            assert!(tokio::time::timeout(soon, gone.as_mut()).await.is_err());
            drop(first);
            assert!(tokio::time::timeout(soon, gone.as_mut()).await.is_err(), "they have a while");
            let _second = presence.listens();
            assert!(tokio::time::timeout(soon, gone.as_mut()).await.is_err());
            assert_eq!(*presence.0.borrow(), 1);
        });
    }
}
