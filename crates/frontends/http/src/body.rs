//! JSON that was sent: bounded, of the right kind, and every complaint a problem.

use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use serde::de::DeserializeOwned;

use crate::App;
use crate::problem::Problem;

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
        let bytes = axum::body::to_bytes(request.into_body(), app.options.largest_body).await;
        let bytes = bytes.map_err(|_| too_large(app))?;
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

pub fn too_large(app: &App) -> Problem {
    let detail = format!("the body is larger than {} bytes, or it was cut off", app.options.largest_body);
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail).hint("send less at once")
}
