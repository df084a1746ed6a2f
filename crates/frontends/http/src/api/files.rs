//! `/v1/sandboxes/{id}/files`: what is in a sandbox. Everything is done inside it, behind its walls: a path leads where it would lead
//! a command there, and nowhere else.

use std::os::fd::OwnedFd;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bytes::Bytes;
use model::{FileOperation, MOST_ARCHIVED_BYTES, MOST_FILE_BYTES, OnlyIf};
use serde::Deserialize;
use serde_json::{Value, json};
use service::{Lost, Said, Streams, Task};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use utoipa::{IntoParams, ToSchema};

use super::ranges::{self, Range};
use super::{Asked, Named, streamed};
use crate::App;
use crate::admission::Admitted;
use crate::body::{self, Sent};
use crate::caller::Caller;
use crate::problem::{Problem, Result};
use crate::runs::Event;
use crate::tokens::Scope;

/// How many secrets were left out of what is told.
const REDACTED: &str = "belljar-redacted";
/// How deep a list goes.
const DEEPEST: u64 = 32;

/// What came of it, and what was read.
async fn work(
    app: &App,
    caller: &Caller,
    id: String,
    operation: FileOperation,
    input: Option<Bytes>,
) -> Result<(Value, Vec<u8>)> {
    let admitted = app.admission.enter(&caller.who).await?;
    work_admitted(app, caller, id, operation, input, admitted).await
}

/// Whoever goes away does not stop it half-way.
async fn work_admitted(
    app: &App,
    caller: &Caller,
    id: String,
    operation: FileOperation,
    input: Option<Bytes>,
    admitted: Admitted,
) -> Result<(Value, Vec<u8>)> {
    let using = app.opened.uses(&caller.tenant, &id)?;
    let (job, pool) = (caller.job(app, Task::Files { id, operation }), app.pool.clone());
    let task = tokio::spawn(async move {
        let _using = using;
        let (output, streams) = piped(input).map_err(lost)?;
        let mut running = pool.begin(&job, Some(streams)).await?;
        let reading = tokio::spawn(async move {
            let mut read = Vec::new();
            // A header of its own for each entry of an archive.
            output.take(2 * MOST_ARCHIVED_BYTES).read_to_end(&mut read).await.map(|_| read)
        });
        let answer = loop {
            if let Said::Answer(answer) = running.next().await? {
                break answer;
            }
        };
        drop(admitted);
        let value = Problem::or_value(answer)?;
        let content = reading.await.map_err(|_| Problem::from(Lost::Ended))?.map_err(lost)?;
        Ok((value, content))
    });
    task.await.map_err(|_| Problem::from(Lost::Ended))?
}

fn lost(error: std::io::Error) -> Problem {
    Lost::Io(error).into()
}

fn piped(input: Option<Bytes>) -> std::io::Result<(pipe::Receiver, Streams)> {
    use rustix::fs::{Mode, OFlags, open};
    use rustix::pipe::{PipeFlags, pipe_with};
    let nothing =
        || -> std::io::Result<OwnedFd> { Ok(open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?) };
    let input = match input {
        None => nothing()?,
        Some(bytes) => {
            let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
            let mut sender = pipe::Sender::from_owned_fd(ours)?;
            tokio::spawn(async move {
                // Whoever does not read all of it says why in the answer.
                drop(sender.write_all(&bytes).await);
            });
            theirs
        }
    };
    let (ours, output) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((pipe::Receiver::from_owned_fd(ours)?, Streams { input, output, error: nothing()? }))
}

/// A path in a sandbox: from its workspace on, or from its root if it begins with `/`.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct At {
    pub path: String,
}

#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Listed {
    /// A folder; the workspace if it is not said.
    pub path: String,
    /// How many levels; 1 if it is not said.
    #[param(minimum = 1, maximum = 32)]
    pub depth: Option<u64>,
}

#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Looked {
    pub path: String,
    /// Of what a link leads to, rather than of the link.
    #[serde(default)]
    pub follow: bool,
}

#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Written {
    pub path: String,
    /// Permission bits in octal, such as 755.
    pub mode: Option<String>,
    /// Make folders that lead to it; yes if it is not said.
    pub parents: Option<bool>,
}

#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Removed {
    pub path: String,
    /// A folder with everything in it.
    #[serde(default)]
    pub recursive: bool,
}

#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Searched {
    /// A folder or a file; the workspace if it is not said.
    #[serde(default)]
    pub path: String,
    pub pattern: String,
    /// The pattern is a regular expression, rather than just text.
    #[serde(default)]
    pub regex: bool,
    #[serde(default)]
    pub ignore_case: bool,
    /// Only files with such names: `*.py`.
    pub names: Option<String>,
    /// At most so many.
    #[param(minimum = 1, maximum = 2000)]
    pub limit: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WatchedFolder {
    /// A folder; the workspace if it is not said.
    pub path: String,
    /// With folders that are in it.
    pub recursive: bool,
}

/// A file's contents, or with `Range` a part of them. Secrets that are known, and what looks like some, are left out;
/// `Belljar-Redacted` says how many. Up to 64 MiB; of larger files, ask for ranges.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/files", tag = "files",
    params(("id" = String, Path, description = "Its id or name"), At),
    responses((status = 200, description = "Its bytes", content_type = "application/octet-stream", body = Vec<u8>),
        (status = 206, description = "A part of them", content_type = "application/octet-stream", body = Vec<u8>),
        (status = 304, description = "It still has the digest of `If-None-Match`"),
        (status = 416, description = "It is not as long as that", content_type = "application/problem+json", body = Problem)))]
pub async fn read(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Named(id): Named<String>,
    Asked(At { path }): Asked<At>,
) -> Result<Response> {
    caller.needs(Scope::Read)?;
    let range = headers.get(header::RANGE).and_then(|range| ranges::of(range.to_str().ok()?));
    // Whether it is still the same is only known of the whole.
    let range = range.filter(|_| !headers.contains_key(header::IF_RANGE));
    let (from, length) = match range {
        None => (0, None),
        Some(Range::From { first, length }) => (first, Some(length.unwrap_or(MOST_FILE_BYTES).min(MOST_FILE_BYTES))),
        Some(Range::Last(last)) => {
            let operation = FileOperation::Stat { path: path.clone(), follow: true };
            let (found, _) = work(&app, &caller, id.clone(), operation, None).await?;
            let size = found["entries"][0]["size"].as_u64().unwrap_or_default();
            (size.saturating_sub(last), Some(last.min(MOST_FILE_BYTES)))
        }
    };
    let (told, content) = work(&app, &caller, id, FileOperation::Read { path, from, length }, None).await?;
    let size = told["entries"][0]["size"].as_u64().unwrap_or_default();
    let mut answer = HeaderMap::new();
    let mut put = |name: header::HeaderName, value: String| {
        if let Ok(value) = HeaderValue::from_str(&value) {
            answer.insert(name, value);
        }
    };
    // Hostile bytes: never shown as a page of ours, whatever they look like.
    put(header::CONTENT_TYPE, "application/octet-stream".to_owned());
    put(header::CONTENT_DISPOSITION, "attachment".to_owned());
    put(header::ACCEPT_RANGES, "bytes".to_owned());
    put(header::HeaderName::from_static(REDACTED), told["redacted"].as_u64().unwrap_or_default().to_string());
    if range.is_some() {
        if content.is_empty() {
            let problem = Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, "range", "the file ends before that");
            return Ok(([(header::CONTENT_RANGE, format!("bytes */{size}"))], problem).into_response());
        }
        let last = from + content.len() as u64 - 1;
        put(header::CONTENT_RANGE, format!("bytes {from}-{last}/{}", size.max(last + 1)));
        return Ok((StatusCode::PARTIAL_CONTENT, answer, content).into_response());
    }
    if let Some(digest) = told["digest"].as_str() {
        let tag = format!("\"{digest}\"");
        put(header::ETAG, tag.clone());
        if headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
            return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
        }
    }
    Ok((answer, content).into_response())
}

/// Write a file, all of it at once: whoever reads it meanwhile has the old one or the new. `If-None-Match: *` replaces nothing,
/// `If-Match` only what has that digest. A link is replaced, never written through. Up to 64 MiB.
#[utoipa::path(put, path = "/v1/sandboxes/{id}/files", tag = "files",
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    params(("id" = String, Path, description = "Its id or name"), Written),
    responses((status = 200, description = "How much it is, and its digest", body = Object)))]
pub async fn write(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Named(id): Named<String>,
    Asked(Written { path, mode, parents }): Asked<Written>,
    body: Body,
) -> Result<Response> {
    caller.needs(Scope::Files)?;
    let mode = match mode {
        None => None,
        Some(text) => Some(octal(&text).ok_or_else(|| Problem::wrong("`mode` is up to three octal digits: 644"))?),
    };
    let operation = FileOperation::Write { path, mode, only: only(&headers)?, parents: parents.unwrap_or(true) };
    let admitted = app.admission.enter(&caller.who).await?;
    let bytes = body::read_up_to(MOST_FILE_BYTES as usize, body).await?;
    let (told, _) = work_admitted(&app, &caller, id, operation, Some(bytes), admitted).await?;
    let tag = format!("\"{}\"", told["digest"].as_str().unwrap_or_default());
    Ok(([(header::ETAG, tag)], Json(told)).into_response())
}

fn octal(text: &str) -> Option<u32> {
    let digits = (1..=4).contains(&text.len()) && text.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
    digits.then(|| u32::from_str_radix(text, 8).ok()).flatten().filter(|mode| *mode <= 0o777)
}

fn only(headers: &HeaderMap) -> Result<OnlyIf> {
    let said = |name: header::HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default().trim());
    match (said(header::IF_NONE_MATCH), said(header::IF_MATCH)) {
        (None, None) => Ok(OnlyIf::Always),
        (Some("*"), None) => Ok(OnlyIf::New),
        (None, Some(tag)) => {
            let digest = tag.trim_matches('"');
            let is_digest = digest.len() == 64 && digest.bytes().all(|digit| digit.is_ascii_hexdigit());
            is_digest.then(|| OnlyIf::Digest(digest.to_ascii_lowercase())).ok_or_else(|| {
                Problem::wrong("`If-Match` is one `ETag` of a file").hint("read the file for its `ETag`")
            })
        }
        _ => Err(Problem::wrong("`If-None-Match` is `*` here, and does not go with `If-Match`")),
    }
}

/// Remove a file, a link or an empty folder; with `recursive`, a folder with everything in it.
#[utoipa::path(delete, path = "/v1/sandboxes/{id}/files", tag = "files",
    params(("id" = String, Path, description = "Its id or name"), Removed),
    responses((status = 200, description = "How many names are gone", body = Object)))]
pub async fn remove(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
    Asked(Removed { path, recursive }): Asked<Removed>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Files)?;
    Ok(Json(work(&app, &caller, id, FileOperation::Remove { path, recursive }, None).await?.0))
}

/// What is in a folder: up to 10,000 entries, by path. `cut` says that there are more.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/files/list", tag = "files",
    params(("id" = String, Path, description = "Its id or name"), Listed),
    responses((status = 200, description = "Its entries", body = Object)))]
pub async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
    Asked(Listed { path, depth }): Asked<Listed>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Read)?;
    let depth = depth.unwrap_or(1);
    if !(1..=DEEPEST).contains(&depth) {
        return Err(Problem::wrong(format!("`depth` is between 1 and {DEEPEST}")));
    }
    let (mut told, _) = work(&app, &caller, id, FileOperation::List { path, depth }, None).await?;
    if told["entries"].is_null() {
        told["entries"] = json!([]);
    }
    Ok(Json(told))
}

/// What a path leads to.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/files/stat", tag = "files",
    params(("id" = String, Path, description = "Its id or name"), Looked),
    responses((status = 200, description = "Its kind, mode, size and time", body = Object)))]
pub async fn stat(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
    Asked(Looked { path, follow }): Asked<Looked>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Read)?;
    let (told, _) = work(&app, &caller, id, FileOperation::Stat { path, follow }, None).await?;
    Ok(Json(told["entries"][0].clone()))
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FolderRequest {
    pub path: String,
    /// Make folders that lead to it, and be content if it is there.
    #[serde(default)]
    pub parents: bool,
}

/// Make a folder.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/files/folder", tag = "files", request_body = FolderRequest,
    params(("id" = String, Path, description = "Its id or name")),
    responses((status = 201, description = "It is there", body = Object)))]
pub async fn make_folder(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
    Sent(FolderRequest { path, parents }): Sent<FolderRequest>,
) -> Result<Response> {
    caller.needs(Scope::Files)?;
    let (told, _) = work(&app, &caller, id, FileOperation::MakeFolder { path, parents }, None).await?;
    Ok((StatusCode::CREATED, Json(told)).into_response())
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveRequest {
    pub path: String,
    pub to: String,
    /// What is there may go.
    #[serde(default)]
    pub replace: bool,
}

/// Give something another path.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/files/move", tag = "files", request_body = MoveRequest,
    params(("id" = String, Path, description = "Its id or name")),
    responses((status = 200, description = "It has", body = Object)))]
pub async fn rename(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
    Sent(MoveRequest { path, to, replace }): Sent<MoveRequest>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Files)?;
    Ok(Json(work(&app, &caller, id, FileOperation::Move { path, to, replace }, None).await?.0))
}

/// Lines with something in them, in files that are text and no larger than 8 MiB.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/files/search", tag = "files",
    params(("id" = String, Path, description = "Its id or name"), Searched),
    responses((status = 200, description = "Where it is", body = Object)))]
pub async fn search(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
    Asked(searched): Asked<Searched>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Read)?;
    let Searched { path, pattern, regex, ignore_case, names, limit } = searched;
    if pattern.is_empty() {
        return Err(Problem::wrong("`pattern` is empty"));
    }
    if limit.is_some_and(|limit| !(1..=model::MOST_MATCHES).contains(&limit)) {
        return Err(Problem::wrong(format!("`limit` is between 1 and {}", model::MOST_MATCHES)));
    }
    let operation = FileOperation::Search { path, pattern, regex, ignore_case, names, most: limit };
    let (mut told, _) = work(&app, &caller, id, operation, None).await?;
    if told["matches"].is_null() {
        told["matches"] = json!([]);
    }
    Ok(Json(told))
}

/// A folder with everything in it, or a file, as an uncompressed tar archive: plain files, folders and links, without secrets.
/// Up to 50,000 entries and 128 MiB.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/files/tar", tag = "files",
    params(("id" = String, Path, description = "Its id or name"), At),
    responses((status = 200, description = "The archive", content_type = "application/x-tar", body = Vec<u8>)))]
pub async fn pack(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
    Asked(At { path }): Asked<At>,
) -> Result<Response> {
    caller.needs(Scope::Read)?;
    let (told, content) = work(&app, &caller, id, FileOperation::Pack { path }, None).await?;
    let headers = [
        (header::CONTENT_TYPE, "application/x-tar".to_owned()),
        (header::CONTENT_DISPOSITION, "attachment".to_owned()),
        (header::HeaderName::from_static(REDACTED), told["redacted"].as_u64().unwrap_or_default().to_string()),
    ];
    Ok((headers, content).into_response())
}

/// Put what is in an uncompressed tar archive into a folder that is there. Names must lead below it; devices, pipes and hard
/// links are left out. Up to 64 MiB.
#[utoipa::path(put, path = "/v1/sandboxes/{id}/files/tar", tag = "files",
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    params(("id" = String, Path, description = "Its id or name"), At),
    responses((status = 200, description = "How many entries were taken, and how many left out", body = Object)))]
pub async fn unpack(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
    Asked(At { path }): Asked<At>,
    body: Body,
) -> Result<Json<Value>> {
    caller.needs(Scope::Files)?;
    let admitted = app.admission.enter(&caller.who).await?;
    let bytes = body::read_up_to(MOST_FILE_BYTES as usize, body).await?;
    let (told, _) = work_admitted(&app, &caller, id, FileOperation::Unpack { path }, Some(bytes), admitted).await?;
    Ok(Json(told))
}

/// What happens in a folder of an open sandbox, as it happens: events `change`. Counts as a job as long as somebody listens.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/files/watch", tag = "files",
    params(("id" = String, Path, description = "Its id or name"), WatchedFolder),
    responses((status = 200, description = "Events", content_type = "text/event-stream", body = String)))]
pub async fn watch(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
    Asked(WatchedFolder { path, recursive }): Asked<WatchedFolder>,
) -> Result<Response> {
    caller.needs(Scope::Read)?;
    let admitted = app.admission.enter(&caller.who).await?;
    let using = app.opened.uses(&caller.tenant, &id)?;
    let (output, streams) = piped(None).map_err(lost)?;
    let job = caller.job(&app, Task::Files { id, operation: FileOperation::Watch { path, recursive } });
    let mut running = app.pool.begin(&job, Some(streams)).await?;
    let mut lines = BufReader::new(output).lines();
    // Its first word is that it watches; before it there may be a reason why it does not.
    tokio::select! {
        line = lines.next_line() => match line {
            Ok(Some(_)) => {}
            _ => return Err(last_word(&mut running).await),
        },
        said = running.next() => match said? {
            Said::Answer(answer) => return Err(problem(answer)),
            Said::Notice(_) | Said::Asks { .. } | Said::Asked { .. } | Said::Ready(_) => {}
        },
    }
    let (sends, receives) = mpsc::channel(64);
    tokio::spawn(async move {
        let _held = (admitted, using);
        for number in 1.. {
            let event = tokio::select! {
                line = lines.next_line() => match line {
                    Ok(Some(line)) => Event { number, kind: "change", data: Bytes::from(line) },
                    _ => break,
                },
                () = sends.closed() => break,
            };
            if sends.send(event).await.is_err() {
                break;
            }
        }
        // Whoever drops this ends it.
        drop(running);
    });
    Ok(streamed(receives))
}

async fn last_word(running: &mut service::Running) -> Problem {
    loop {
        match running.next().await {
            Ok(Said::Answer(answer)) => return problem(answer),
            Ok(Said::Notice(_) | Said::Asks { .. } | Said::Asked { .. } | Said::Ready(_)) => {}
            Err(lost) => return lost.into(),
        }
    }
}

fn problem(answer: service::Answer) -> Problem {
    match Problem::or_value(answer) {
        Err(problem) => problem,
        Ok(_) => Problem::from(Lost::Ended),
    }
}
