//! Where batches go: an output, a file, posts, lines of syslog. Each says whether a batch was taken, whole.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use egress::{Client, Encryption, Settings, Stream, Trust, Url, Wire};
use export::{Origin, cloud_events, json_line, metrics, syslog, traces};
use model::{Destination, Export, ExportFormat, Trouble};
use serde_json::Value;

use super::shape::Batch;

/// For one message.
const PATIENCE: Duration = Duration::from_secs(30);

/// It was not taken.
pub struct Failure {
    pub trouble: Trouble,
    /// Whether it may be better soon.
    pub may_pass: bool,
}

pub struct Sink<'a> {
    format: ExportFormat,
    one_each: bool,
    kind: Kind<'a>,
}

enum Kind<'a> {
    Output(&'a mut dyn Write),
    /// To its end.
    File(PathBuf, File),
    /// In its place.
    Whole(PathBuf),
    Posts(Box<Client>),
    Lines(Wire, Option<Stream>),
}

impl<'a> Sink<'a> {
    pub fn open(wish: &Export, output: &'a mut dyn Write, tell: &dyn Fn(&str)) -> Result<Sink<'a>, Failure> {
        let encryption = if wish.unencrypted { Encryption::NotNeeded } else { Encryption::Needed };
        let trust = wish.authorities.clone().map_or(Trust::Host, Trust::File);
        let kind = match &wish.to {
            Destination::Output => Kind::Output(output),
            Destination::File(path) if wish.format == ExportFormat::Prometheus => Kind::Whole(path.clone()),
            Destination::File(path) => Kind::File(path.clone(), appended(path, tell).map_err(cannot(path))?),
            Destination::Http(address) => {
                let mut url = Url::read(address)?;
                if wish.format == ExportFormat::Otlp {
                    url = url.or_at("/v1/traces");
                }
                let header_file = wish.header_file.clone();
                Kind::Posts(Box::new(Client::new(Settings {
                    url,
                    encryption,
                    trust,
                    header_file,
                    patience: PATIENCE,
                })?))
            }
            Destination::Unix(path) => Kind::Lines(Wire::Unix(path.clone()), None),
            Destination::Udp { host, port } => {
                Kind::Lines(Wire::Udp { host: host.clone(), port: *port, encryption }, None)
            }
            Destination::Tcp { host, port } => {
                Kind::Lines(Wire::Tcp { host: host.clone(), port: *port, encryption }, None)
            }
            Destination::Tls { host, port } => Kind::Lines(Wire::Tls { host: host.clone(), port: *port, trust }, None),
            // Served elsewhere, and never sent.
            Destination::Page(_) => {
                let message = "a page is not sent".to_owned();
                let trouble = Trouble { message, fix: "please report this".to_owned() };
                return Err(Failure { trouble, may_pass: false });
            }
        };
        Ok(Sink { format: wish.format, one_each: wish.one_each, kind })
    }

    /// After this the other side has it, as far as it says so.
    pub fn deliver(&mut self, origin: &Origin, batch: &Batch) -> Result<(), Failure> {
        let format = self.format;
        match &mut self.kind {
            Kind::Output(output) => {
                let text = lines(format, origin, batch);
                output.write_all(text.as_bytes()).and_then(|()| output.flush()).map_err(|error| Failure {
                    trouble: Trouble {
                        message: format!("cannot write to standard output: {error}"),
                        fix: "send it somewhere else".to_owned(),
                    },
                    may_pass: false,
                })
            }
            Kind::File(path, file) => {
                let text = lines(format, origin, batch);
                let written = file.write_all(text.as_bytes()).and_then(|()| match file.metadata()?.is_file() {
                    true => file.sync_data(),
                    false => Ok(()),
                });
                written.map_err(cannot(path))
            }
            Kind::Whole(path) => replaced(path, &lines(format, origin, batch)).map_err(cannot(path)),
            Kind::Posts(client) => match format == ExportFormat::CloudEvents && self.one_each {
                true => batch.items.iter().try_for_each(|item| post(client, cloud_events::ONE, json_line(item))),
                false => {
                    let (content_type, body) = body(format, origin, batch);
                    post(client, content_type, body)
                }
            },
            Kind::Lines(wire, stream) => {
                let sent = send(wire, stream, batch);
                if sent.is_err() {
                    // The next try begins anew.
                    *stream = None;
                }
                sent.map_err(Failure::from)
            }
        }
    }

    pub fn close(&mut self) -> Result<(), Failure> {
        match &mut self.kind {
            Kind::Lines(_, stream) => stream.take().map_or(Ok(()), Stream::close).map_err(Failure::from),
            Kind::Output(_) | Kind::File(..) | Kind::Whole(_) | Kind::Posts(_) => Ok(()),
        }
    }
}

impl From<egress::Error> for Failure {
    fn from(error: egress::Error) -> Failure {
        let trouble = Trouble { message: error.to_string(), fix: error.fix().to_owned() };
        Failure { trouble, may_pass: error.may_pass() }
    }
}

fn cannot(path: &Path) -> impl FnOnce(io::Error) -> Failure {
    move |error| Failure {
        trouble: Trouble {
            message: format!("cannot write `{}`: {error}", path.display()),
            fix: "see that its folder is there and that you may write to it".to_owned(),
        },
        // Room may be made; a folder that is not there will not come by itself.
        may_pass: matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded),
    }
}

/// An item a line.
fn lines(format: ExportFormat, origin: &Origin, batch: &Batch) -> String {
    match format {
        ExportFormat::Otlp => json_line(&traces::request(origin, batch.items.clone())) + "\n",
        ExportFormat::Prometheus => batch.items.iter().filter_map(Value::as_str).collect(),
        ExportFormat::Syslog => {
            batch.items.iter().filter_map(Value::as_str).map(|line| line.to_owned() + "\n").collect()
        }
        ExportFormat::Ndjson | ExportFormat::Ocsf | ExportFormat::CloudEvents => {
            batch.items.iter().map(|item| json_line(item) + "\n").collect()
        }
    }
}

fn body(format: ExportFormat, origin: &Origin, batch: &Batch) -> (&'static str, String) {
    let list = || {
        let items: Vec<String> = batch.items.iter().map(json_line).collect();
        format!("[{}]", items.join(","))
    };
    match format {
        ExportFormat::Ocsf => ("application/json", list()),
        ExportFormat::CloudEvents => (cloud_events::SEVERAL, list()),
        ExportFormat::Otlp => ("application/json", lines(format, origin, batch)),
        ExportFormat::Prometheus => (metrics::CONTENT_TYPE, lines(format, origin, batch)),
        ExportFormat::Ndjson | ExportFormat::Syslog => ("application/x-ndjson", lines(format, origin, batch)),
    }
}

fn post(client: &Client, content_type: &str, body: String) -> Result<(), Failure> {
    client.post(content_type, body.into_bytes()).map(drop).map_err(Failure::from)
}

fn send(wire: &Wire, stream: &mut Option<Stream>, batch: &Batch) -> egress::Result<()> {
    let stream = match stream {
        Some(stream) => stream,
        None => stream.insert(Stream::open(wire, PATIENCE)?),
    };
    let lines = batch.items.iter().filter_map(Value::as_str);
    if wire.is_stream() {
        let all: String = lines.map(syslog::framed).collect();
        return stream.send(all.as_bytes());
    }
    for line in lines {
        stream.send(line.as_bytes())?;
    }
    Ok(())
}

/// For its owner alone: what it gets names commands and paths.
fn appended(path: &Path, tell: &dyn Fn(&str)) -> io::Result<File> {
    let mut options = File::options();
    std::os::unix::fs::OpenOptionsExt::mode(options.append(true).create(true), 0o600);
    let mut file = options.open(path)?;
    let kind = file.metadata()?;
    if kind.is_file() && kind.len() > 0 {
        let mut last = [0];
        let mut reading = File::open(path)?;
        reading.seek(SeekFrom::End(-1))?;
        reading.read_exact(&mut last)?;
        if last != *b"\n" {
            tell(&format!("the last line of `{}` was never whole; what it was about is sent again", path.display()));
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}

/// Whoever reads it sees the old one or the new one.
fn replaced(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".new-{}", std::process::id()));
    let beside = path.with_file_name(name);
    let written = std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        // Half of a file of ours: if it stays, it is in nobody's way.
        std::fs::remove_file(&beside).ok();
    }
    written
}
