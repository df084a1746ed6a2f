//! What went wrong, as RFC 9457 says it: with the rule, the reason and what to do.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use model::{FileFailure, FileTrouble, OTHER_REVISION};
use serde::Serialize;
use serde_json::Value;
use service::{Answer, Lost};
use utoipa::ToSchema;

/// `application/problem+json`.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Problem {
    /// Which kind it is: `urn:belljar:problem:…`.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    pub detail: String,
    /// Of a refusal: the rule that says no.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why the rule says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Of a refusal: each thing that was denied, with the smallest grant that would allow it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub denial: Option<Value>,
    /// Where another policy is in force than was expected: its revision, which is also the `ETag`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The same as the header `X-Request-Id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    #[serde(skip)]
    pub retry_after: Option<u64>,
}

pub type Result<T> = std::result::Result<T, Problem>;

impl Problem {
    pub fn new(status: StatusCode, kind: &str, detail: impl Into<String>) -> Problem {
        Problem {
            kind: format!("urn:belljar:problem:{kind}"),
            title: status.canonical_reason().unwrap_or("Problem").to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            rule: None,
            reason: None,
            hint: None,
            denial: None,
            revision: None,
            request_id: None,
            retry_after: None,
        }
    }

    pub fn hint(self, hint: impl Into<String>) -> Problem {
        Problem { hint: Some(hint.into()), ..self }
    }

    pub fn rule(self, rule: &str) -> Problem {
        Problem { rule: Some(rule.to_owned()), ..self }
    }

    pub fn after(self, seconds: u64) -> Problem {
        Problem { retry_after: Some(seconds.max(1)), ..self }
    }

    /// The same whether there is no such thing or it is somebody else's.
    pub fn not_found() -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "not-found", "there is no such thing here").hint("list what there is")
    }

    pub fn wrong(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "wrong-request", detail).hint("see `/v1/reference`")
    }

    fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// A run that did not run.
    pub fn of_outcome(result: &Value) -> Option<Problem> {
        let error = &result["error"];
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let detail = text(&error["message"]).unwrap_or_else(|| "it was not run".to_owned());
        let (status, kind) = match result["outcome"].as_str() {
            Some("ran") => return None,
            Some("refused") if error["rule"] == OTHER_REVISION => (StatusCode::PRECONDITION_FAILED, "policy-differs"),
            Some("refused") if result["code"] == 122 => (StatusCode::FORBIDDEN, "approval-missing"),
            Some("refused") => (StatusCode::FORBIDDEN, "refused"),
            Some("not-started") => (StatusCode::UNPROCESSABLE_ENTITY, "not-started"),
            _ => (StatusCode::UNPROCESSABLE_ENTITY, "not-set-up"),
        };
        let denials =
            Some(result["denials"].clone()).filter(|list| list.as_array().is_some_and(|list| !list.is_empty()));
        let other = error["rule"] == OTHER_REVISION;
        let revision = denials.as_ref().filter(|_| other).and_then(|list| text(&list[0]["about"]));
        let reason = denials.as_ref().and_then(|list| text(&list[0]["reason"]));
        Some(Problem {
            rule: text(&error["rule"]).or_else(|| text(&error["wall"])),
            hint: text(&error["fix"]),
            reason,
            denial: denials,
            revision,
            ..Problem::new(status, kind, detail)
        })
    }

    /// Something that was not done to files.
    fn of_files(failure: FileFailure) -> Problem {
        let FileFailure { kind, message, fix } = failure;
        let (status, kind) = match kind {
            FileTrouble::NotThere => (StatusCode::NOT_FOUND, "no-such-file"),
            FileTrouble::Exists => (StatusCode::CONFLICT, "file-exists"),
            FileTrouble::Differs => (StatusCode::PRECONDITION_FAILED, "file-differs"),
            FileTrouble::WrongKind => (StatusCode::CONFLICT, "file-kind"),
            FileTrouble::Denied => (StatusCode::FORBIDDEN, "file-denied"),
            FileTrouble::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "too-large"),
            FileTrouble::NoRoom => (StatusCode::CONFLICT, "no-room"),
            FileTrouble::Wrong => (StatusCode::UNPROCESSABLE_ENTITY, "wrong-request"),
            FileTrouble::TooLong | FileTrouble::Broken => (StatusCode::CONFLICT, "files-ended"),
        };
        Problem::new(status, kind, message).hint(fix)
    }

    /// What a carrier answered, if it is none of the good answers.
    pub fn or_value(answer: Answer) -> Result<Value> {
        match answer {
            Answer::Done(value) => Ok(value),
            Answer::Outcome(value) => match Problem::of_outcome(&value) {
                None => Ok(value),
                Some(problem) => Err(problem),
            },
            Answer::NotFound => Err(Problem::not_found()),
            Answer::Wrong { what, hint } => {
                Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "wrong-request", what).hint(hint))
            }
            Answer::Conflict { what, hint } => Err(Problem::new(StatusCode::CONFLICT, "conflict", what).hint(hint)),
            Answer::NoContext { what, hint } => {
                Err(Problem::new(StatusCode::NOT_FOUND, "no-such-context", what).hint(hint))
            }
            Answer::Files(failure) => Err(Problem::of_files(failure)),
            Answer::Trouble { message, fix } => {
                Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "trouble", message).hint(fix))
            }
        }
    }
}

impl From<Lost> for Problem {
    fn from(lost: Lost) -> Problem {
        match lost {
            Lost::TooLarge(_) => Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", lost.to_string()),
            Lost::Ended | Lost::Io(_) => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "lost", lost.to_string())
                .hint("nothing is known of its end; see the ledger, and try again")
                .after(1),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, after) = (self.status(), self.retry_after);
        let mut response = (status, Json(&self)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(after) = after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(after));
        }
        if let Some(tag) =
            self.revision.as_ref().and_then(|revision| HeaderValue::try_from(format!("\"{revision}\"")).ok())
        {
            headers.insert(header::ETAG, tag);
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"belljar\""));
        }
        // For whoever adds the request's id.
        response.extensions_mut().insert(self);
        response
    }
}
