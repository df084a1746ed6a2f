//! Bodies on their way: each piece is looked at as it passes, and none is kept.

use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body_util::Full;
use hyper::HeaderMap;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::HeaderValue;
use model::{Cached, NetworkDeed, NetworkEvent};

use super::conceal::Conceal;
use super::exchange::{Exchange, Stopped};
use super::fence::may_trail;
use super::secrets::Scan;
use super::value::SecretValue;
use super::watch::Watch;
use crate::cache::{Keeping, Whole};

/// Why a body did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum Cut {
    #[error("the gate let it go no further")]
    Stopped,
    #[error(transparent)]
    Broken(#[from] hyper::Error),
}

/// What goes out.
pub struct Outgoing {
    /// Read while somebody was asked. Goes first.
    first: VecDeque<Frame<Bytes>>,
    rest: Option<Incoming>,
    look: Option<Look>,
    fence: Option<(Arc<Watch>, u64)>,
    exchange: Rc<Exchange>,
}

struct Look {
    scan: Scan,
    secrets: Rc<Vec<SecretValue>>,
}

impl Outgoing {
    pub fn new(
        body: Incoming,
        secrets: Rc<Vec<SecretValue>>,
        fence: Option<(Arc<Watch>, u64)>,
        exchange: Rc<Exchange>,
    ) -> Outgoing {
        let look = (!secrets.is_empty()).then(|| Look { scan: Scan::new(&secrets), secrets });
        Outgoing { first: VecDeque::new(), rest: Some(body), look, fence, exchange }
    }

    /// The next piece as it came, to be shown to somebody; it will go first.
    pub fn poll_ahead(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Cut>>> {
        let Some(frame) = ready!(self.poll_new(context)) else { return Poll::Ready(None) };
        let frame = match frame {
            Ok(frame) => frame,
            Err(cut) => return Poll::Ready(Some(Err(cut))),
        };
        let data = frame.data_ref().cloned().unwrap_or_default();
        self.first.push_back(frame);
        Poll::Ready(Some(Ok(data)))
    }

    fn poll_new(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let Some(rest) = &mut self.rest else { return Poll::Ready(None) };
        let frame = match ready!(Pin::new(rest).poll_frame(context)) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
            None => {
                self.rest = None;
                // An end that the fence made up, to get out of a body that is unsound: the server must not see one.
                let broken = self.fence.as_ref().and_then(|(watch, number)| watch.body(*number));
                return Poll::Ready(broken.map(|violation| {
                    self.stop(NetworkDeed::Request, 400, "egress.http", violation.0.to_owned(), None)
                }));
            }
        };
        // Trailers of a body that the fence cut are its own, and there are none.
        let trouble = match (frame.data_ref(), frame.trailers_ref()) {
            (Some(data), _) => self.look.as_mut().and_then(|look| look.scan.finds(data)),
            (_, Some(trailers)) => {
                if let Some(name) = trailers.keys().find(|name| !may_trail(name.as_str())) {
                    let why = format!("a trailer `{name}` that belongs before the body");
                    return Poll::Ready(Some(self.stop(NetworkDeed::Request, 400, "egress.http", why, None)));
                }
                let look = self.look.as_mut();
                look.and_then(|look| {
                    trailers.values().find_map(|value| Scan::new(&look.secrets).finds(value.as_bytes()))
                })
            }
            _ => None,
        };
        let Some(number) = trouble else { return Poll::Ready(Some(Ok(frame))) };
        let name = self.look.as_ref().and_then(|look| look.secrets.get(number)).map(|secret| secret.name.clone());
        let why = format!(
            "what stands for the secret `{}` is in the body of the request; it is added to headers and queries only",
            name.as_deref().unwrap_or_default()
        );
        Poll::Ready(Some(self.stop(NetworkDeed::Secret, 403, "secret.place", why, name)))
    }

    fn stop(
        &mut self,
        what: NetworkDeed,
        status: u16,
        rule: &str,
        why: String,
        secret: Option<String>,
    ) -> Result<Frame<Bytes>, Cut> {
        self.rest = None;
        self.first.clear();
        let event =
            NetworkEvent { denied: true, rule: rule.to_owned(), why: why.clone(), secret, ..self.exchange.event(what) };
        // It goes no further, whether that can be written down or not.
        drop(self.exchange.session.refuses(&event));
        self.exchange.stops(Stopped { status, why, rule: rule.to_owned() });
        Err(Cut::Stopped)
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let this = self.get_mut();
        let frame = match this.first.pop_front() {
            Some(frame) => Some(Ok(frame)),
            None => ready!(this.poll_new(context)),
        };
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            this.exchange.counts(data.len() as u64, 0);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        // Where a fence could have cut it, its end has to be asked for.
        let rest = self.rest.as_ref().is_none_or(Incoming::is_end_stream);
        self.first.is_empty() && rest && self.fence.as_ref().is_none_or(|(watch, number)| watch.body(*number).is_none())
    }

    fn size_hint(&self) -> SizeHint {
        let held: u64 = self.first.iter().filter_map(Frame::data_ref).map(|data| data.len() as u64).sum();
        let rest = self.rest.as_ref().map_or_else(|| SizeHint::with_exact(0), Incoming::size_hint);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(held));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(held));
        }
        hint
    }
}

/// What comes back.
pub enum Answer {
    /// By us.
    Said(Full<Bytes>),
    Relayed(Box<Relayed>),
    /// Of what is kept.
    Kept(Box<Given>),
}

pub struct Given {
    whole: Whole,
    at: u64,
    exchange: Rc<Exchange>,
}

pub struct Relayed {
    rest: Incoming,
    conceal: Option<Conceal>,
    trailers: Option<HeaderMap>,
    /// Gets a copy of what comes, if that is to be kept.
    keeping: Option<Keeping>,
    exchange: Rc<Exchange>,
}

impl Answer {
    pub fn relayed(
        rest: Incoming,
        conceal: Option<Conceal>,
        keeping: Option<Keeping>,
        exchange: Rc<Exchange>,
    ) -> Answer {
        Answer::Relayed(Box::new(Relayed { rest, conceal, trailers: None, keeping, exchange }))
    }

    pub fn kept(whole: Whole, exchange: Rc<Exchange>) -> Answer {
        Answer::Kept(Box::new(Given { whole, at: 0, exchange }))
    }
}

impl Given {
    fn left(&self) -> u64 {
        self.whole.entry.length.saturating_sub(self.at)
    }

    fn next(&mut self) -> Option<Result<Frame<Bytes>, Cut>> {
        if self.left() == 0 {
            return None;
        }
        // It was whole a moment ago. If it no longer is, the client sees a connection that breaks, and no end.
        let Ok(piece) = self.whole.piece(self.at) else { return Some(Err(Cut::Stopped)) };
        self.at += piece.len() as u64;
        self.exchange.counts_cached(piece.len() as u64);
        Some(Ok(Frame::data(piece.into())))
    }
}

impl Relayed {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        loop {
            if let Some(trailers) = self.trailers.take() {
                return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
            }
            let frame = match ready!(Pin::new(&mut self.rest).poll_frame(context)) {
                Some(frame) => frame?,
                None => {
                    self.is_kept();
                    let last = self.conceal.take().map(|mut conceal| conceal.end()).filter(|last| !last.is_empty());
                    return Poll::Ready(last.map(|last| Ok(Frame::data(last.into()))));
                }
            };
            if let Some(data) = frame.data_ref() {
                self.exchange.counts(0, data.len() as u64);
            }
            self.keeps(&frame);
            let Some(conceal) = &mut self.conceal else { return Poll::Ready(Some(Ok(frame))) };
            match frame.into_data() {
                Ok(data) => {
                    let shown = conceal.pass(&data);
                    if !shown.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(shown.into()))));
                    }
                }
                Err(frame) => {
                    let mut trailers = frame.into_trailers().unwrap_or_default();
                    conceal_headers(conceal, &mut trailers);
                    self.trailers = Some(trailers);
                    let last = conceal.end();
                    if !last.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(last.into()))));
                    }
                }
            }
        }
    }
}

impl Relayed {
    /// A copy for others. Whatever is wrong with that, the client gets its own.
    fn keeps(&mut self, frame: &Frame<Bytes>) {
        let Some(keeping) = &mut self.keeping else { return };
        let taken = frame.data_ref().is_some_and(|data| keeping.takes(data).is_ok());
        if !taken {
            self.keeping = None;
        } else if self.rest.is_end_stream() {
            self.is_kept();
        }
    }

    /// All has come. Before the client has it all, too: whoever hears from it that it is done finds it.
    fn is_kept(&mut self) {
        if let Some(Ok(digest)) = self.keeping.take().map(Keeping::ends) {
            self.exchange.is_cached(Cached::Kept(digest));
        }
    }
}

/// A header that can't be shown without the value is not shown.
pub fn conceal_headers(conceal: &Conceal, headers: &mut HeaderMap) {
    for value in headers.values_mut() {
        if let Some(changed) = conceal.whole(value.as_bytes()) {
            *value = HeaderValue::from_bytes(&changed).unwrap_or(HeaderValue::from_static(""));
        }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match self.get_mut() {
            Answer::Said(said) => Pin::new(said).poll_frame(context).map_err(|never| match never {}),
            Answer::Relayed(relayed) => relayed.poll(context),
            Answer::Kept(given) => Poll::Ready(given.next()),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Answer::Said(said) => said.is_end_stream(),
            Answer::Relayed(relayed) => relayed.conceal.is_none() && relayed.rest.is_end_stream(),
            Answer::Kept(given) => given.left() == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Answer::Said(said) => said.size_hint(),
            Answer::Relayed(relayed) if relayed.conceal.is_none() => relayed.rest.size_hint(),
            Answer::Relayed(_) => SizeHint::default(),
            Answer::Kept(given) => SizeHint::with_exact(given.left()),
        }
    }
}
