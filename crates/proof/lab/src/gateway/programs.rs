//! Random programs of several clients over few connections of the gateway, beside the same programs
//! over private connections to MariaDB (`testkit::programs`).

use anyhow::{Context, Result, ensure};
use testkit::programs::{Plant, Planted, Program, Stage, server_options};
use testkit::topology::{Replicated, small};
use testkit::{Folder, Launch, Server, free_port};

use super::{Kept, start_with};

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// How many programs are drawn.
    #[arg(long, default_value_t = 200)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Connections to each server.
    #[arg(long, default_value_t = 2)]
    connections: u32,
    /// Replicas of the server behind the gateway.
    #[arg(long, default_value_t = 0)]
    replicas: usize,
    /// The gateway keeps results of queries.
    #[arg(long)]
    cache: bool,
    /// Plays them through proxies that each make one kind of mistake, in place of the gateway. Each
    /// has to be found, and nothing where none is made.
    #[arg(long)]
    planted: bool,
    /// How many differences are reduced and printed before the run ends.
    #[arg(long, default_value_t = 1)]
    show: usize,
}

/// Programs within which each planted mistake has to be found. Most show by the first or second.
const PLANTED_SEEDS: u64 = 40;

/// Programs that show nothing where no mistake is made.
const RIGHT_SEEDS: u64 = 12;

/// Draws, plays, compares and prints differences; an error if there are any.
pub fn run(arguments: &Arguments) -> Result<()> {
    let options = server_options();
    if arguments.planted {
        return run_planted();
    }
    let with_options = |launch: Launch| options.iter().fold(launch, |launch, it| launch.with(*it));
    let servers = match arguments.replicas {
        0 => vec![with_options(small()).start()?],
        count => Replicated::start_with(count, with_options)?.servers,
    };
    let reference = with_options(small()).start()?;
    let folder = Folder::new("gateway")?;
    let port = free_port()?;
    let ports: Vec<u16> = servers.iter().map(Server::port).collect();
    let mut roots = servers.iter().map(Server::connect);
    let primary = roots.next().context("there is a server")??;
    let replicas = roots.collect::<Result<_>>()?;
    let stage = Stage::new(primary, (reference.connect()?, reference.port()), port)?;
    let mut stage = stage.with_replicas(replicas);
    let kept = match arguments.cache {
        true => Kept::Results,
        false => Kept::Nothing,
    };
    let limits = (arguments.connections, None);
    let _gateway = start_with(&folder, port, &ports, (limits, kept))?;
    let mut found = 0;
    let mut actions = 0;
    for seed in arguments.seed..arguments.seed + arguments.seeds {
        let program = Program::draw(seed);
        actions += program.parts.iter().map(Vec::len).sum::<usize>();
        let compared = stage
            .compare(&program)
            .with_context(|| format!("seed {seed}"))?;
        let Some(difference) = compared else {
            continue;
        };
        println!("[seed {seed}]\n{}", stage.reduce(difference)?);
        println!(
            "again: cargo xtask programs --seed {seed} --seeds 1 --connections {} --replicas {}{}",
            arguments.connections,
            arguments.replicas,
            if arguments.cache { " --cache" } else { "" }
        );
        found += 1;
        if arguments.show <= found {
            break;
        }
    }
    println!("{actions} actions, {found} programs differ");
    ensure!(found == 0, "{found} programs differ");
    Ok(())
}

/// Plays programs through proxies with planted mistakes.
fn run_planted() -> Result<()> {
    let start = || {
        let options = server_options();
        let launch = options.iter().fold(small(), |launch, it| launch.with(*it));
        launch.start()
    };
    let (behind, reference) = (start()?, start()?);
    let mut stage = Stage::new(
        behind.connect()?,
        (reference.connect()?, reference.port()),
        0,
    )?;
    let mut wrong = Vec::new();
    let all = Plant::ALL.iter().copied();
    for (name, plant) in all.chain([("nothing", Plant::Nothing)]) {
        let planted = Planted::new(behind.port(), plant)?;
        let found = std::thread::scope(|scope| {
            planted.serve(scope);
            stage.go_to(planted.port()?);
            let mut seeds = match plant {
                Plant::Nothing => 1..=RIGHT_SEEDS,
                _ => 1..=PLANTED_SEEDS,
            };
            let is_found = |seed: &u64| {
                let compared = stage.compare(&Program::draw(*seed));
                compared.is_ok_and(|it| it.is_some())
            };
            let found = seeds.find(is_found);
            planted.end()?;
            anyhow::Ok(found)
        })?;
        match found {
            Some(seed) => println!("{name}: found by seed {seed}"),
            None => println!("{name}: not found"),
        }
        if found.is_some() == (plant == Plant::Nothing) {
            wrong.push(name);
        }
    }
    ensure!(wrong.is_empty(), "wrong: {}", wrong.join(", "));
    Ok(())
}
