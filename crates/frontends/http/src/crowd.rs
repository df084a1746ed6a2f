//! Who is connected. When there is no place left, whoever has said nothing for longest makes room: a flood of connections that
//! ask for nothing keeps nobody out who does.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::http::Response;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

pub struct Crowd {
    places: Arc<Semaphore>,
    most: usize,
    guests: Mutex<Guests>,
}

#[derive(Default)]
struct Guests {
    next: u64,
    /// Since when each says nothing: the lowest number for longest. Those that are being answered are not here.
    silent: BTreeMap<u64, Arc<Notify>>,
}

/// One that is connected, for as long as it is.
pub struct Guest {
    crowd: Arc<Crowd>,
    number: Mutex<Option<u64>>,
    answers: AtomicUsize,
    leave: Arc<Notify>,
    _place: OwnedSemaphorePermit,
}

impl Crowd {
    pub fn new(most: usize) -> Arc<Crowd> {
        Arc::new(Crowd { places: Arc::new(Semaphore::new(most)), most, guests: Mutex::default() })
    }

    /// Waits for a place; sends somebody away for it, if somebody says nothing.
    pub async fn place(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            return Some(place);
        }
        self.make_room();
        self.places.clone().acquire_owned().await.ok()
    }

    /// Whether there was anybody.
    pub fn make_room(&self) -> bool {
        let silent = self.lock().silent.pop_first();
        silent.map(|(_, leave)| leave.notify_one()).is_some()
    }

    pub fn welcome(self: &Arc<Crowd>, place: OwnedSemaphorePermit) -> Arc<Guest> {
        let guest = Guest {
            crowd: self.clone(),
            number: Mutex::new(None),
            answers: AtomicUsize::new(0),
            leave: Arc::default(),
            _place: place,
        };
        guest.falls_silent();
        Arc::new(guest)
    }

    /// Comes back when nobody is there any more.
    pub async fn gone(&self) {
        let all = u32::try_from(self.most).unwrap_or(u32::MAX);
        drop(self.places.acquire_many(all).await);
    }

    fn lock(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guest {
    /// Comes back when its place is needed for somebody else.
    pub async fn told_to_leave(&self) {
        loop {
            self.leave.notified().await;
            // It may have begun to speak in the same moment.
            if self.answers.load(Ordering::Relaxed) == 0 {
                return;
            }
        }
    }

    fn falls_silent(&self) {
        let mut guests = self.crowd.lock();
        guests.next += 1;
        let number = guests.next;
        guests.silent.insert(number, self.leave.clone());
        *self.number.lock().unwrap_or_else(PoisonError::into_inner) = Some(number);
    }

    fn speaks(&self) {
        let number = self.number.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(number) = number {
            self.crowd.lock().silent.remove(&number);
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.speaks();
    }
}

/// From when it has said what it wants until it has the whole answer.
struct Answering(Arc<Guest>);

impl Answering {
    fn new(guest: Arc<Guest>) -> Answering {
        if guest.answers.fetch_add(1, Ordering::Relaxed) == 0 {
            guest.speaks();
        }
        Answering(guest)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        if self.0.answers.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.falls_silent();
        }
    }
}

/// A guest that is being answered, whatever it is that goes on: who takes a connection over as something else than HTTP keeps
/// this with it, and so the place of the guest.
#[derive(Clone)]
pub struct Connection(#[expect(dead_code, reason = "it is kept, and not looked at")] Arc<Answering>);

/// Answers one guest's requests.
#[derive(Clone)]
pub struct Answers {
    router: TowerToHyperService<Router>,
    guest: Arc<Guest>,
}

impl Answers {
    pub fn new(router: Router, guest: Arc<Guest>) -> Answers {
        Answers { router: TowerToHyperService::new(router), guest }
    }
}

impl Service<hyper::Request<Incoming>> for Answers {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn call(&self, mut request: hyper::Request<Incoming>) -> Self::Future {
        let answering = Arc::new(Answering::new(self.guest.clone()));
        request.extensions_mut().insert(Connection(answering.clone()));
        let answer = self.router.call(request);
        Box::pin(async move {
            let response = answer.await?;
            Ok(response.map(|body| {
                Body::new(body.map_frame(move |frame| {
                    // Kept with the body: a stream is an answer that goes on.
                    std::hint::black_box(&answering);
                    frame
                }))
            }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_said_nothing_for_longest_makes_room_and_nobody_who_is_being_answered() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let crowd = Crowd::new(3);
            let come = async || crowd.welcome(crowd.place().await.expect("a place"));
            let (first, second, third) = (come().await, come().await, come().await);
            let answering = Answering::new(first.clone());
            let leaves = tokio::spawn(async move {
                second.told_to_leave().await;
                drop(second);
            });
            let fourth = come().await;
            leaves.await.expect("the second left, since the first is being answered");
            drop(answering);
            // Now the third is the one who is silent for longest, then the fourth, then the first.
            for guest in [third, fourth, first] {
                assert!(crowd.make_room());
                guest.told_to_leave().await;
            }
            assert!(!crowd.make_room());
            crowd.gone().await;
        });
    }
}
