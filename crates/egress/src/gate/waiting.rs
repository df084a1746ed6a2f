//! Work that waits for people and programs, on threads of its own: those that look names up must never wait for it.

use std::thread;

use tokio::sync::{Semaphore, oneshot};

/// At once. Whoever comes after them waits for a turn, and is asked about then.
const MOST: usize = 64;
/// It only waits.
const STACK: usize = 512 << 10;

static TURNS: Semaphore = Semaphore::const_new(MOST);

/// Has something that takes long done beside the gate, whose own thread must not wait. Nothing, if it could not be done.
pub async fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let turn = TURNS.acquire().await.ok()?;
    let (tell, told) = oneshot::channel();
    let begun = thread::Builder::new().name("belljar-waits".to_owned()).stack_size(STACK).spawn(move || {
        // Until the work is done, not until nobody wants it any more: threads are what is counted.
        let _turn = turn;
        // Whoever wanted it may have left.
        drop(tell.send(work()));
    });
    begun.ok()?;
    told.await.ok()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Condvar, Mutex};
    use std::time::Duration;

    use super::*;

    /// As the gate makes it.
    fn runtime() -> tokio::runtime::Runtime {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().max_blocking_threads(1).build().expect("a runtime")
    }

    #[derive(Default)]
    struct Door(Mutex<bool>, Condvar);

    impl Door {
        fn wait(&self) {
            let open = self.0.lock().expect("a lock");
            drop(self.1.wait_while(open, |open| !*open).expect("a lock"));
        }

        fn open(&self) {
            *self.0.lock().expect("a lock") = true;
            self.1.notify_all();
        }
    }

    // Together in one test: turns are shared by the whole process.
    #[test]
    fn however_many_wait_names_are_looked_up_and_threads_are_bounded() {
        let (door, now, highest) =
            (Arc::new(Door::default()), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        runtime().block_on(async {
            let mut waiting = tokio::task::JoinSet::new();
            for number in 0..3 * MOST {
                let (door, now, highest) = (door.clone(), now.clone(), highest.clone());
                waiting.spawn(on_a_thread(move || {
                    highest.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    door.wait();
                    now.fetch_sub(1, Ordering::SeqCst);
                    number
                }));
            }
            while now.load(Ordering::SeqCst) < MOST {
                tokio::task::yield_now().await;
            }
            // This is what the resolver does.
            let looked_up = tokio::task::spawn_blocking(|| "found");
            let looked_up = tokio::time::timeout(Duration::from_secs(60), looked_up).await;
            assert_eq!(looked_up.expect("in time").expect("a word"), "found");
            door.open();
            let mut done: Vec<usize> = Vec::new();
            while let Some(one) = waiting.join_next().await {
                done.push(one.expect("joined").expect("done"));
            }
            done.sort_unstable();
            assert_eq!(done, (0..3 * MOST).collect::<Vec<_>>());
            assert_eq!(highest.load(Ordering::SeqCst), MOST);
            // One that fails takes nothing with it.
            let fails = on_a_thread(|| Vec::<u8>::new().swap_remove(0)).await;
            assert_eq!(fails, None);
            assert_eq!(on_a_thread(|| 1).await, Some(1));
        });
    }
}
