//! Reads what goes out where single requests are judged. Until it can, it lets nothing through.

use std::io;
use std::rc::Rc;

use tokio::net::TcpStream;

use crate::gate::passage::Passage;
use crate::gate::session::Session;

pub struct Reader;

impl Reader {
    pub(crate) async fn tls(
        &self,
        session: &Rc<Session>,
        passage: Passage,
        begun: Vec<u8>,
        client: TcpStream,
        upstream: TcpStream,
    ) -> io::Result<()> {
        self.plain(session, passage, begun, client, upstream).await
    }

    pub(crate) async fn plain(
        &self,
        _session: &Rc<Session>,
        passage: Passage,
        _begun: Vec<u8>,
        _client: TcpStream,
        _upstream: TcpStream,
    ) -> io::Result<()> {
        let Passage { number, endpoint, address, caller } = passage;
        let who = caller.map_or("somebody".to_owned(), |caller| caller.program);
        let why = format!("{number}: what {who} has to say to {endpoint} at {address} can't be read yet");
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }
}
