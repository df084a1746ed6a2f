//! Programs in the languages that agents write, over what is read on its way: each has its own idea of whom to trust.

use std::process::Command;

use belljar_testkit::Who;

use crate::needing::{Needing, PYTHON, python};
use crate::served::Served;
use crate::world::{NAME, World};

pub const ALL: &[Needing] = &[
    ("python_requests_httpx_and_aiohttp_trust_the_gate", &[PYTHON], python_clients),
    ("web_sockets_pass_in_both_directions", &[PYTHON], web_sockets),
    ("grpc_streams_in_both_directions", &[PYTHON], grpc),
    ("node_fetches_and_asks_over_https", &["node"], node),
    ("java_trusts_the_gate", &["java"], java),
    ("go_trusts_the_gate", &["go"], go),
];

fn python_clients(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    world.reads("download", "1ms")?;
    let url = world.url("/bytes/100000");
    let post = world.url("/echo");
    let script = format!(
        "import asyncio, urllib.request, aiohttp, httpx, requests\n\
         print('urllib', len(urllib.request.urlopen('{url}', timeout=10).read()))\n\
         session = requests.Session()\n\
         print('requests', len(session.get('{url}', timeout=10).content), session.post('{post}', data='x', timeout=10).status_code)\n\
         with httpx.Client(timeout=10) as client:\n\
         \x20   print('httpx', len(client.get('{url}').content), client.post('{post}', data={{'a': 'b'}}).status_code)\n\
         async def work():\n\
         \x20   async with aiohttp.ClientSession() as session:\n\
         \x20       async with session.get('{url}') as got: size = len(await got.read())\n\
         \x20       async with session.post('{post}', data=b'x') as got: print('aiohttp', size, got.status)\n\
         asyncio.run(work())\n"
    );
    let wanted = "urllib 100000\nrequests 100000 403\nhttpx 100000 403\naiohttp 100000 403";
    world.expect(&[], &[&python(), "-c", &script], 0, wanted)?;
    match world.arrived()?.iter().all(|one| one["method"] == "GET") {
        true => Ok(()),
        false => Err(format!("{:?}", world.arrived())),
    }
}

const SOCKETS: &str = "import asyncio, ssl, sys
from websockets.asyncio.server import serve
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1] + '/server.pem', sys.argv[1] + '/server.key')
async def talk(socket):
    await socket.send('welcome')
    async for message in socket: await socket.send(message)
async def main():
    async with serve(talk, '127.0.0.1', 0, ssl=context, max_size=None) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
asyncio.run(main())";

fn web_sockets(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let served = Served::telling(Command::new(python()).args(["-c", SOCKETS]).arg(&world.folder))?;
    let script = format!(
        "import asyncio, websockets\n\
         async def main():\n\
         \x20   async with websockets.connect('wss://{NAME}:{}/talk', max_size=None) as socket:\n\
         \x20       print(await socket.recv())\n\
         \x20       for size in [1, 70000, 3000000]:\n\
         \x20           await socket.send(b'y' * size); print(len(await socket.recv()))\n\
         asyncio.run(main())\n",
        served.port
    );
    let run = || world.run(&[], &[&python(), "-c", &script]);
    // What may be downloaded from is not to be talked to.
    world.reads_at("download", served.port, "1ms")?;
    let refused = run()?;
    if refused.code == Some(0) || !refused.error.contains("WEBSOCKET") {
        return Err(format!("{refused:?}"));
    }
    world.desk.policy(&format!(
        "[network]\nallow = [\"127.0.0.1:{0}\"]\n[[rule]]\nid = \"talk\"\n\
         when = {{ host = \"{NAME}:{0}\", method = \"WEBSOCKET\", url = \"/talk\" }}\nthen = \"allow\"\nwhy = \"a test\"\n\
         matches = [\"WEBSOCKET https://{NAME}:{0}/talk\"]\npasses = [\"GET https://{NAME}:{0}/talk\"]\n",
        served.port
    ))?;
    world.expect(&[], &[&python(), "-c", &script], 0, "welcome\n1\n70000\n3000000").map(drop)
}

const CALLS: &str = "import grpc, sys
from concurrent import futures
folder = sys.argv[1]
def one(request, context):
    context.set_trailing_metadata((('seen', str(len(request))),)); return request[::-1]
def many(requests, context):
    for request in requests: yield request + b'!'
def wrong(request, context): context.abort(grpc.StatusCode.NOT_FOUND, 'there is none')
handler = grpc.method_handlers_generic_handler('world.Talk', {
    'One': grpc.unary_unary_rpc_method_handler(one), 'Many': grpc.stream_stream_rpc_method_handler(many),
    'Wrong': grpc.unary_unary_rpc_method_handler(wrong)})
server = grpc.server(futures.ThreadPoolExecutor(4)); server.add_generic_rpc_handlers((handler,))
credentials = grpc.ssl_server_credentials([(open(folder + '/server.key', 'rb').read(), open(folder + '/server.pem', 'rb').read())])
print(server.add_secure_port('127.0.0.1:0', credentials), flush=True)
server.start(); sys.stdin.read()";

fn grpc(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let served = Served::telling(Command::new(python()).args(["-c", CALLS]).arg(&world.folder))?;
    let script = format!(
        "import grpc, os, queue\n\
         with grpc.secure_channel('{NAME}:{}', grpc.ssl_channel_credentials()) as channel:\n\
         \x20   answer, call = channel.unary_unary('/world.Talk/One').with_call(b'abc', timeout=10)\n\
         \x20   print(answer, dict(call.trailing_metadata())['seen'])\n\
         \x20   asked = queue.Queue()\n\
         \x20   answers = channel.stream_stream('/world.Talk/Many')(iter(asked.get, None), timeout=10)\n\
         \x20   for number in range(3): asked.put(b'%d' % number); print(next(answers))\n\
         \x20   asked.put(None); print(len(list(answers)))\n\
         \x20   try: channel.unary_unary('/world.Talk/Wrong')(b'', timeout=10)\n\
         \x20   except grpc.RpcError as error: print(error.code().name, error.details())\n\
         \x20   try: channel.unary_unary('/world.Other/One')(b'', timeout=10)\n\
         \x20   except grpc.RpcError as error: print(error.code().name)\n",
        served.port
    );
    world.desk.policy(&format!(
        "[network]\nallow = [\"127.0.0.1:{0}\"]\n[[rule]]\nid = \"talk\"\nthen = \"allow\"\nwhy = \"it is ours\"\n\
         when = {{ host = \"{NAME}:{0}\", method = \"POST\", url = \"/world.Talk/*\" }}\n",
        served.port
    ))?;
    let wanted = "b'cba' 3\nb'0!'\nb'1!'\nb'2!'\n0\nNOT_FOUND there is none\nPERMISSION_DENIED\n";
    world.expect(&[], &[&python(), "-c", &script], 0, wanted).map(drop)
}

fn node(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    world.reads("download", "1ms")?;
    let script = format!(
        "const url = '{}', post = '{}';\n\
         (async () => {{\n\
           console.log('fetch', (await (await fetch(url)).text()).length);\n\
           console.log('post', (await fetch(post, {{ method: 'POST', body: 'x' }})).status);\n\
           require('https').get(url, (got) => {{\n\
             let size = 0; got.on('data', (part) => size += part.length).on('end', () => console.log('https', size)); }});\n\
         }})();",
        world.url("/bytes/100000"),
        world.url("/echo")
    );
    world.expect(&[], &["node", "-e", &script], 0, "fetch 100000\npost 403\nhttps 100000").map(drop)
}

fn java(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    world.reads("download", "1ms")?;
    let source = format!(
        "import java.net.URI; import java.net.http.*;\n\
         public class Get {{ public static void main(String[] a) throws Exception {{\n\
           var client = HttpClient.newHttpClient();\n\
           var get = HttpRequest.newBuilder(URI.create(\"{}\")).build();\n\
           System.out.println(\"java \" + client.send(get, HttpResponse.BodyHandlers.ofByteArray()).body().length);\n\
           var post = HttpRequest.newBuilder(URI.create(\"{}\")).POST(HttpRequest.BodyPublishers.ofString(\"x\")).build();\n\
           System.out.println(\"post \" + client.send(post, HttpResponse.BodyHandlers.ofString()).statusCode());\n\
         }} }}\n",
        world.url("/bytes/100000"),
        world.url("/echo")
    );
    world.desk.put("Get.java", &source)?;
    world.expect(&[], &["java", "Get.java"], 0, "java 100000\npost 403").map(drop)
}

fn go(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    world.reads("download", "1ms")?;
    let source = format!(
        "package main\nimport (\n\"fmt\"\n\"io\"\n\"net/http\"\n\"strings\"\n)\nfunc main() {{\n\
         got, err := http.Get(\"{}\")\nif err != nil {{ panic(err) }}\nbody, _ := io.ReadAll(got.Body)\n\
         fmt.Println(\"go\", len(body))\npost, err := http.Post(\"{}\", \"text/plain\", strings.NewReader(\"x\"))\n\
         if err != nil {{ panic(err) }}\nfmt.Println(\"post\", post.StatusCode)\n}}\n",
        world.url("/bytes/100000"),
        world.url("/echo")
    );
    world.desk.put("get.go", &source)?;
    world.expect(&[], &["sh", "-c", "GOCACHE=$PWD/cache go run get.go"], 0, "go 100000\npost 403").map(drop)
}
