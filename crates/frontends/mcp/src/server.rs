//! What a client meets: tools, resources, progress, and calls that wait for a person.

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, InputRequest, InputRequests, InputRequiredResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, MetaObject, PaginatedRequestParams,
    ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ResourceContents, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use service::Task;
use service::job::Asked;

use crate::caller::{Caller, Needs};
use crate::calls::{Call, Now};
use crate::house::{House, Worker, new_id};
use crate::resources::{self, Named};
use crate::said::Failure;
use crate::state::{self, Digest};
use crate::{deeds, tools};

/// Whoever comes back while a person is still being asked waits for so long, and is told the same again then. Clients come
/// back by themselves, and only so often.
const PATIENCE: Duration = Duration::from_secs(25);
/// After being cancelled, a call's last words are waited for.
const LAST_WORDS: Duration = Duration::from_secs(20);
/// So often at most, a client that wants to know is told that it goes on.
const EVERY: Duration = Duration::from_millis(500);
/// Resources in a list.
const MOST_LISTED: usize = 200;

/// Revisions that are served.
const REVISIONS: &[ProtocolVersion] =
    &[ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];

const INSTRUCTIONS: &str = "\
Runs commands and code in sandboxes. Inside one everything is free and can be undone; what leaves it is judged by a policy. Every \
tool takes `sandbox`, an id or a name that a tool said before. Changes reach real files only by `apply`, and a person says yes to \
that outside of this protocol: you can neither approve nor ask the user to approve in your place by a form. Where something is \
denied, the error names the rule and what would help; do not try the same again.";

#[derive(Clone)]
pub struct Server {
    house: Arc<House>,
    /// Who asks, where it is always the same.
    caller: Option<Caller>,
}

impl Server {
    pub fn new(house: Arc<House>, caller: Option<Caller>) -> Server {
        Server { house, caller }
    }

    /// By what whoever let the request in has put beside it, and by nothing else.
    fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
        let sent = || context.extensions.get::<http_types::request::Parts>()?.extensions.get::<Caller>();
        let known = self.caller.as_ref().or_else(sent).cloned();
        known.ok_or_else(|| ErrorData::internal_error("nobody is known to have asked", None))
    }

    /// Begins a call, or finds the one that is meant. The second: somebody has been here before.
    fn begin(
        &self,
        caller: &Caller,
        request: CallToolRequestParams,
        newest: bool,
    ) -> Result<(Arc<Call>, bool), Failure> {
        let Some(known) = tools::find(&request.name) else {
            return Err(Failure::wrong(format!("there is no tool `{}`", request.name.escape_debug())));
        };
        caller.needs(known.needs)?;
        let digest = state::digest(&request.name, request.arguments.as_ref());
        if let Some(sealed) = &request.request_state {
            let id = self.house.seal.open(sealed, &caller.key, &digest)?;
            let call = self.house.calls.find(&id, &caller.key, &digest).ok_or_else(state::refused)?;
            // A no, from whomever, is a no; a yes to a form is worth nothing.
            if request.input_responses.is_some_and(|responses| declines(&responses)) {
                call.cancel.cancel();
            }
            return Ok((call, true));
        }
        if !newest && let Some(call) = self.house.calls.same(&caller.key, &digest) {
            return Ok((call, true));
        }
        let call = Call::new(new_id()?, &caller.key, digest);
        let worker = Worker { house: self.house.clone(), caller: caller.clone(), call: call.clone() };
        let doing = (known.begin)(worker, request.arguments)?;
        let begun = call.clone();
        tokio::spawn(async move { begun.over(doing.await) });
        Ok((call, false))
    }

    /// Waits with whoever asked: for the end, or until a person must be waited for.
    async fn attend(
        &self,
        call: &Arc<Call>,
        again: bool,
        newest: bool,
        caller: &Caller,
        digest: &Digest,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let mut leaving = Leaving { call, stays: true };
        let mut now = call.watch();
        let mut news = call.news.subscribe();
        let mut patience = again;
        let mut waited = pin!(tokio::time::sleep(PATIENCE));
        let follows = context.meta.get_progress_token().is_some();
        let (mut told, mut rests) = (0_u32, false);
        let mut pause = pin!(tokio::time::sleep(EVERY));
        let mut gone = pin!(async {
            match &caller.presence {
                Some(presence) => presence.gone().await,
                None => std::future::pending().await,
            }
        });
        loop {
            let state = now.borrow_and_update().clone();
            match state {
                Now::Over(end) => {
                    leaving.stays = false;
                    if !self.house.calls.take(call) {
                        return state::refused().told().into();
                    }
                    return match end.as_ref() {
                        Ok(good) => good.told().into(),
                        Err(failure) => failure.told().into(),
                    };
                }
                Now::Asks { question, how } if !patience => {
                    if let Err(full) = self.house.calls.park(call) {
                        return full.told().into();
                    }
                    leaving.stays = false;
                    return match newest {
                        true => self.asks(call, &question, &how, caller, digest, context).into(),
                        false => must_be_answered(&question, &how, caller).told().into(),
                    };
                }
                Now::Asks { .. } | Now::Goes => {}
            }
            tokio::select! {
                changed = now.changed() => if changed.is_err() {
                    return Failure::from(service::Lost::Ended).told().into();
                },
                () = waited.as_mut(), if patience => patience = false,
                () = async { tokio::select! { () = context.ct.cancelled() => {}, () = gone.as_mut() => {} } },
                    if !call.cancel.is_cancelled() => {
                    call.cancel.cancel();
                    drop(tokio::time::timeout(LAST_WORDS, now.wait_for(|now| matches!(now, Now::Over(_)))).await);
                    self.house.calls.take(call);
                    return Failure::new("cancelled", "it was ended because it was cancelled").told().into();
                }
                Ok(()) = news.changed(), if follows && !rests => {
                    let (_, text) = news.borrow_and_update().clone();
                    told += 1;
                    progress(context, told, text).await;
                    rests = true;
                    pause.as_mut().reset(tokio::time::Instant::now() + EVERY);
                }
                () = pause.as_mut(), if rests => rests = false,
            }
        }
    }

    fn asks(
        &self,
        call: &Call,
        question: &str,
        how: &str,
        caller: &Caller,
        digest: &Digest,
        context: &RequestContext<RoleServer>,
    ) -> InputRequiredResult {
        let sealed = self.house.seal.close(&call.id, &caller.key, digest);
        let forms = context.client_capabilities().is_some_and(|capabilities| capabilities.elicitation.is_some());
        let requests = forms.then(|| form(question, how, caller)).flatten();
        let mut meta = MetaObject::default();
        meta.insert("belljar/question".to_owned(), question.into());
        meta.insert("belljar/how".to_owned(), way(question, caller).into());
        InputRequiredResult::new(requests, Some(sealed)).with_meta(meta)
    }

    fn worker(&self, caller: Caller) -> Result<Worker, ErrorData> {
        let id = new_id().map_err(|failure| ErrorData::internal_error(failure.message, None))?;
        let call = Call::new(id, &caller.key, [0; 32]);
        Ok(Worker { house: self.house.clone(), caller, call })
    }

    async fn read(&self, uri: &str, caller: Caller) -> Result<ResourceContents, ErrorData> {
        let missing = || ErrorData::resource_not_found("there is no such resource here", Some(json!({"uri": uri})));
        let named = resources::named(uri).ok_or_else(missing)?;
        may_read(&caller)?;
        let tenant = caller.tenant.clone();
        let worker = self.worker(caller)?;
        let told = |failure: Failure| match failure.kind {
            "not-found" => missing(),
            _ => ErrorData::invalid_request(failure.message, failure.fix.map(Value::from)),
        };
        match named {
            Named::Artifact(id) => {
                let contents = deeds::artifact(&worker, id).await.map_err(told)?;
                let read = match (contents.text, contents.base64) {
                    (Some(text), _) => ResourceContents::text(text, uri),
                    (None, encoded) => ResourceContents::blob(encoded.unwrap_or_else(|| STANDARD.encode([])), uri),
                };
                Ok(read.with_mime_type(contents.kind))
            }
            Named::Log(run) => {
                let log = self.house.logs(&tenant).into_iter().find(|log| log.run == run).ok_or_else(missing)?;
                let text = match log.left_out {
                    0 => log.text,
                    more => format!("{}\n[… {more} bytes more …]\n", log.text),
                };
                Ok(ResourceContents::text(text, uri).with_mime_type("text/plain"))
            }
            Named::Record(run) => {
                let query = Asked { run: Some(run), ..Asked::default() };
                let entries = worker.ask(Task::Entries { query, most: 1_000 }, "run").await.map_err(told)?;
                if entries.as_array().is_none_or(Vec::is_empty) {
                    return Err(missing());
                }
                Ok(ResourceContents::text(entries.to_string(), uri).with_mime_type("application/json"))
            }
        }
    }
}

fn may_read(caller: &Caller) -> Result<(), ErrorData> {
    caller
        .needs(Needs::Read)
        .map_err(|failure| ErrorData::invalid_request(failure.message, failure.fix.map(Value::from)))
}

/// Whoever goes away before the end ends it, unless it is parked.
struct Leaving<'a> {
    call: &'a Call,
    stays: bool,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if self.stays {
            self.call.cancel.cancel();
        }
    }
}

/// How a person answers.
fn way(question: &str, caller: &Caller) -> String {
    match caller.setting.confined {
        false => format!("`belljar approve {question}` in a terminal of their own"),
        true => format!("`POST /v1/approvals/{question}` with a token of theirs that has the scope `approve`"),
    }
}

fn must_be_answered(question: &str, how: &str, caller: &Caller) -> Failure {
    let way = way(question, caller);
    Failure::new("approval-needed", format!("a person must answer question {question} first ({how})"))
        .rule("approvals")
        .fix(format!("a person answers with {way}; then call this tool again with the same arguments"))
        .more(json!({"question": question, "answer_with": way}))
}

/// Tells the person who sits at the client; what they do with the form is no answer, but for a no.
fn form(question: &str, how: &str, caller: &Caller) -> Option<InputRequests> {
    let message = format!(
        "belljar asks a person: question {question} ({how}). This form is no answer: answer with {}, then go on here. To decline here ends the call.",
        way(question, caller)
    );
    let request = json!({"method": "elicitation/create", "params": {
        "mode": "form", "message": message, "requestedSchema": {"type": "object", "properties": {}},
    }});
    let request: InputRequest = serde_json::from_value(request).ok()?;
    Some(InputRequests::from([("person".to_owned(), request)]))
}

fn declines(responses: &rmcp::model::InputResponses) -> bool {
    let action = responses.get("person").and_then(|response| response["action"].as_str());
    matches!(action, Some("decline" | "cancel"))
}

async fn progress(context: &RequestContext<RoleServer>, told: u32, text: String) {
    let Some(token) = context.meta.get_progress_token() else { return };
    let note = ProgressNotificationParam::new(token, f64::from(told)).with_message(text);
    // Whoever does not listen misses nothing: the result says it all.
    drop(context.peer.notify_progress(note).await);
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let mut info = ServerConfig::new(capabilities).with_instructions(INSTRUCTIONS);
        info.server_info = Implementation::new("belljar", self.house.version);
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(REVISIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all().iter().map(|known| known.tool.clone()).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::find(name).map(|known| known.tool.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = self.caller(&context)?;
        if tools::find(&request.name).is_none() {
            return Err(ErrorData::invalid_params("there is no such tool", None));
        }
        let version = context.protocol_version();
        let newest = version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        let digest = state::digest(&request.name, request.arguments.as_ref());
        Ok(match self.begin(&caller, request, newest) {
            Ok((call, again)) => self.attend(&call, again, newest, &caller, &digest, &context).await,
            Err(failure) => failure.told().into(),
        })
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let caller = self.caller(&context)?;
        may_read(&caller)?;
        let logs = self.house.logs(&caller.tenant);
        let worker = self.worker(caller)?;
        let told = |failure: Failure| ErrorData::internal_error(failure.message, failure.fix.map(Value::from));
        let artifacts = worker.ask(Task::Artifacts { of: None }, "artifact").await.map_err(told)?;
        let released = artifacts.as_array().into_iter().flatten().filter(|artifact| artifact["released"] == true);
        let listed = logs.iter().map(|log| resources::log(&log.run)).chain(released.filter_map(resources::artifact));
        Ok(ListResourcesResult::with_all_items(listed.take(MOST_LISTED).collect()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let caller = self.caller(&context)?;
        let contents = self.read(&request.uri, caller).await?;
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}
