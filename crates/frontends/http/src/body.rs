//! JSON that was sent: bounded, of the right kind, and every complaint a problem.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use serde::de::DeserializeOwned;

use crate::App;
use crate::problem::Problem;

/// For all of a body.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Sent<T>(pub T);

impl<T: DeserializeOwned> FromRequest<App> for Sent<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Sent<T>, Problem> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        // A page in a browser can send others across origins without asking.
        if !kind.eq_ignore_ascii_case("application/json") {
            let detail = "the body must be `Content-Type: application/json`";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media-type", detail));
        }
        let bytes = read(app, request.into_body()).await?;
        serde_json::from_slice(&bytes).map(Sent).map_err(|error| {
            let status = match error.is_data() {
                true => StatusCode::UNPROCESSABLE_ENTITY,
                false => StatusCode::BAD_REQUEST,
            };
            Problem::new(status, "wrong-request", format!("the body can't be understood: {error}"))
                .hint("see `/v1/reference`")
        })
    }
}

/// All of it, within limits of size and time.
pub async fn read(app: &App, body: Body) -> Result<Bytes, Problem> {
    read_up_to(app.options.largest_body, body).await
}

/// For whoever has been admitted, so that there are few of them.
pub async fn read_up_to(most: usize, body: Body) -> Result<Bytes, Problem> {
    match tokio::time::timeout(PATIENCE, axum::body::to_bytes(body, most)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => {
            let detail = format!("the body is larger than {most} bytes, or it was cut off");
            Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail).hint("send less at once"))
        }
        Err(_) => {
            let detail = format!("the body did not come within {} seconds", PATIENCE.as_secs());
            Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "too-slow", detail))
        }
    }
}
