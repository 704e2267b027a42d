//! The runtime's null server with this crate in between: whoever comes is logged in, and every
//! query is answered with the same row of 120 bytes. What a query costs here, beyond what it
//! costs in the runtime's own example, is what the protocol costs.
//!
//! `cargo run --release -p front --example null_front -- uring 2 4100`, then for instance
//! `sysbench oltp_point_select --db-ps-mode=disable --mysql-host=127.0.0.1 --mysql-port=4100
//! --skip-trx --tables=1 --table-size=1000 --threads=64 --time=10 run`; it ends with the end of its
//! standard input and then tells the number of queries, and processor time for each.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::io::{Read as _, Write as _};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use front::{
    Account, AccountSource, Client, Credential, Disconnect, Options, PacketMemory, Peer, Resources,
    Shared, system_random,
};
use runtime::{Address, Io, Listener, Runtime, Stream, TaskClass};
use wire::{
    Capabilities, ColumnDefinition, ColumnType, Command, OkKind, OkPacket, PacketWriter,
    ResultHead, StatusFlags, TextRow, end_columns, end_rows,
};

/// Everybody is let in.
struct Everybody;

impl AccountSource for Everybody {
    fn find(&self, user: &str, _peer: Peer) -> Option<Account> {
        Some(Account {
            user: user.to_owned(),
            host: "%".to_owned(),
            credential: Credential::Trusted,
            is_locked: false,
            requires_tls: false,
        })
    }
}

/// What a worker has: the connections' own, and a count of queries.
struct Worker {
    shared: Rc<Shared>,
    queries: Cell<u64>,
}

const OK: OkPacket<'static> = OkPacket {
    affected_rows: 0,
    last_insert_id: 0,
    status: StatusFlags::AUTOCOMMIT,
    warnings: 0,
    info: b"",
    session_changes: b"",
};

async fn serve(stream: Stream) {
    let worker = runtime::local::<Worker>().expect("set at start");
    let Ok(mut client) = Client::accept(stream, &worker.shared, &Everybody, 1).await else {
        return;
    };
    // A client that goes without a word is nobody's trouble here.
    let _ = converse(&mut client, &worker).await;
}

async fn converse(client: &mut Client, worker: &Worker) -> Result<(), Disconnect> {
    client.welcome(&OK).await?;
    let capabilities = client.capabilities();
    loop {
        let bytes = client
            .read_command(Duration::from_secs(28_800), TaskClass::OutsideTransaction)
            .await?;
        match Command::decode(&bytes, capabilities) {
            Ok(Command::Quit) => return Ok(()),
            Ok(Command::Query(text)) if text.starts_with(b"SELECT") => {
                worker.queries.set(worker.queries.get() + 1);
                reply(client.out(), capabilities);
            }
            Ok(_) | Err(_) => OK.encode(client.out(), capabilities, OkKind::Ok),
        }
    }
}

fn reply(out: &mut PacketWriter, capabilities: Capabilities) {
    let column = ColumnDefinition {
        schema: b"sbtest",
        table: b"sbtest1",
        original_table: b"sbtest1",
        original_name: b"c",
        collation: 45,
        display_bytes: 480,
        ..ColumnDefinition::new(b"c", ColumnType::String)
    };
    ResultHead::encode(out, capabilities, 1);
    column.encode(out, capabilities);
    end_columns(out, capabilities, StatusFlags::AUTOCOMMIT, 0);
    let mut row = TextRow::begin(out);
    row.bytes(&[b'7'; 120]);
    row.finish();
    end_rows(out, capabilities, &OK);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [io, worker_count, port] = &arguments[..] else {
        return Err("usage: null_front auto|uring|epoll WORKERS PORT".into());
    };
    let io = match io.as_str() {
        "uring" => Io::Uring,
        "epoll" => Io::Epoll,
        _ => Io::Auto,
    };
    let runtime_options = runtime::Options {
        worker_count: worker_count.parse()?,
        io,
        ..runtime::Options::default()
    };
    let options = Options::new("10.11.0-MariaDB-null", system_random());
    let runtime = Runtime::start(runtime_options, move || {
        let resources = Resources::new(PacketMemory::new(256 << 20), Arc::default());
        let shared = Shared::new(options.clone(), resources, Arc::default());
        runtime::set_local(Rc::new(Worker {
            shared,
            queries: Cell::new(0),
        }));
    })?;
    let address = Address::Tcp(([127, 0, 0, 1], port.parse()?).into());
    runtime.serve(Listener::bind(&address)?, serve)?;
    let mut out = std::io::stdout();
    writeln!(out, "{address} over {}", runtime.handle().driver().kind)?;
    out.flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    let mut query_count = 0;
    for worker in 0..runtime.handle().worker_count() {
        query_count += runtime.block_on_worker(worker, || async {
            runtime::local::<Worker>()
                .expect("set at start")
                .queries
                .get()
        });
    }
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let micros = cpu.tv_sec * 1_000_000 + cpu.tv_nsec / 1000;
    let nanos_each = u128::try_from(micros)? * 1000 / u128::from(query_count.max(1));
    writeln!(
        out,
        "{query_count} queries, {nanos_each} ns of processor time each"
    )?;
    runtime.handle().shutdown(Duration::ZERO);
    runtime.wait()?;
    Ok(())
}
