//! The cost of a statement compared with an earlier build: processor time of the server, with few
//! clients, in all workloads.
//!
//! Two builds that differ by 1 % can be distinguished only if they are measured within a fraction
//! of a second of each other, often, and in both orders: a shared machine may be a sixth slower for
//! minutes. So turns are short, and every second one runs in reverse order. A cell is the median of
//! the ratios of adjacent turns. A process may be lucky with its memory, so each build has several.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::WORKLOADS;
use super::contestant::{Contestant, Program, Setup, base_of, start_all};
use super::pair::{Order, Processor, Timing, measure};
use super::point::{Point, median};
use crate::sample::LoadArguments;
use crate::target::program_or_release;

/// About ten minutes with what stands here as defaults.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The earlier build. If it is the measured build itself, the run shows its noise.
    #[arg(long)]
    against: PathBuf,
    /// The build of Plateau to measure; by default `cargo build --release` builds it.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Numbers of clients.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 64])]
    clients: Vec<u32>,
    /// sysbench scripts without `oltp_`.
    #[arg(long, value_delimiter = ',', default_values_t = WORKLOADS.map(String::from))]
    workloads: Vec<String>,
    /// `plateau-uring`, `plateau-epoll`, or both.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Program::PlateauUring])]
    servers: Vec<Program>,
    /// Generations of server processes.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    generations: u32,
    /// Turns of each build at each point in a generation.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Counted part of a turn, in milliseconds.
    #[arg(long, default_value_t = 150, value_parser = clap::value_parser!(u64).range(1..))]
    turn_ms: u64,
    #[command(flatten)]
    load: LoadArguments,
    /// Settings for both builds as `name=value`.
    #[arg(long = "set")]
    settings: Vec<String>,
}

/// The most that all cells together, and a single one, may cost relative to the earlier build.
const MEAN_MAX: f64 = 1.02;
const CELL_MAX: f64 = 1.06;

/// The most that a build may differ from itself: half of [`MEAN_MAX`], so that the limit exceeds
/// chance.
const TWIN_MAX: f64 = 0.01;

/// Not counted before each turn: enough for few clients to warm their server.
const SETTLE: Duration = Duration::from_millis(50);

/// Not counted after connecting.
const RAMP: Duration = Duration::from_millis(500);

/// Processor time of one point, relative to the earlier build's.
#[derive(Clone, Debug)]
struct Cell {
    workload: String,
    clients: u32,
    server: &'static str,
    /// One for each generation.
    ratios: Vec<f64>,
    own_us: f64,
    base_us: f64,
}

/// Measures all cells and prints them; an error if a limit is missed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let setup = arguments.setup()?;
    let own = arguments.servers.clone();
    let bases = own.iter().map(|program| program.base());
    let bases: Vec<Program> = bases
        .collect::<Option<_>>()
        .context("--servers names builds of Plateau")?;
    let mut cells: Vec<Cell> = Vec::new();
    for generation in 1..=arguments.generations {
        // The build that is started and filled first may have the better memory: they take turns.
        let kinds = match generation % 2 {
            0 => [bases.clone(), own.clone()].concat(),
            _ => [own.clone(), bases.clone()].concat(),
        };
        let mut contestants = start_builds(&kinds, &arguments.clients, &setup)?;
        // Neighbours in turns are those that are compared. The sort keeps the order within a pair.
        contestants.sort_by_key(|it| (it.clients, it.name.split(' ').next_back()));
        for contestant in &mut contestants {
            contestant.fill(&setup)?;
        }
        for workload in &arguments.workloads {
            let mut part: Vec<_> = contestants.iter_mut().collect();
            let points = measure(&setup, &arguments.timing(), &mut part, workload)?;
            add(&mut cells, &points)?;
        }
        let mean = geometric_mean(cells.iter().filter_map(|it| it.ratios.last().copied()));
        println!("generation {generation}: {mean:.3} of the base's processor time");
    }
    report(&cells, is_twin(&setup)?)
}

impl Arguments {
    fn setup(&self) -> Result<Setup> {
        Ok(Setup {
            load: self.load.clone(),
            workloads: self.workloads.clone(),
            flush: 1,
            settings: self.settings.clone(),
            program: program_or_release(self.program.as_deref())?,
            base: Some(self.against.clone()),
        })
    }

    fn timing(&self) -> Timing {
        Timing {
            rounds: self.rounds,
            turns: 1,
            turn: Duration::from_millis(self.turn_ms),
            settle: SETTLE,
            ramp: RAMP,
            processor: Processor::Threads,
            order: Order::Mirrored,
        }
    }
}

/// Whether both builds are the same file, byte by byte.
fn is_twin(setup: &Setup) -> Result<bool> {
    let read = |path: &Path| fs::read(path).with_context(|| path.display().to_string());
    let base = setup.base.as_deref().context("an earlier build")?;
    Ok(read(&setup.program)? == read(base)?)
}

/// Starts the builds for each number of clients. A server has no more workers than clients. With
/// two workers and one client, it is chance whether the client's worker shares its core with the
/// load. Waking another core costs a virtual machine more than a short statement.
fn start_builds(kinds: &[Program], clients: &[u32], setup: &Setup) -> Result<Vec<Contestant>> {
    let processors = u32::try_from(std::thread::available_parallelism()?.get())?;
    let mut started = Vec::new();
    for &clients in clients {
        let mut setup = setup.clone();
        if clients < processors {
            setup.settings.push(format!("workers={clients}"));
        }
        started.extend(start_all(kinds, &[clients], &setup)?);
    }
    Ok(started)
}

/// Adds the measurements of a generation.
fn add(cells: &mut Vec<Cell>, points: &[Point]) -> Result<()> {
    for own in points {
        let Some(base_name) = base_of(own.server) else {
            continue;
        };
        let base = points
            .iter()
            .find(|it| (it.server, it.clients) == (base_name, own.clients))
            .context("both builds are measured at each point")?;
        let ratio = own.ratio_to(base, |it| it.cpu_us);
        let same = |it: &&mut Cell| {
            (&it.workload, it.clients, it.server) == (&own.workload, own.clients, own.server)
        };
        match cells.iter_mut().find(same) {
            Some(cell) => cell.ratios.push(ratio),
            None => cells.push(Cell {
                workload: own.workload.clone(),
                clients: own.clients,
                server: own.server,
                ratios: vec![ratio],
                own_us: own.cpu_us(),
                base_us: base.cpu_us(),
            }),
        }
    }
    Ok(())
}

impl Cell {
    fn ratio(&self) -> f64 {
        geometric_mean(self.ratios.iter().copied())
    }
}

fn geometric_mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values {
        sum += value.ln();
        count += 1.0;
    }
    (sum / count).exp()
}

/// Prints the cells; an error for those above a limit.
fn report(cells: &[Cell], is_twin: bool) -> Result<()> {
    println!("| workload | clients | server | us | base us | ratio | of each generation |");
    println!("|---|--:|---|--:|--:|--:|---|");
    for cell in cells {
        let each: Vec<_> = cell.ratios.iter().map(|it| format!("{it:.3}")).collect();
        println!(
            "| {} | {} | {} | {:.2} | {:.2} | {:.3} | {} |",
            cell.workload,
            cell.clients,
            cell.server,
            cell.own_us,
            cell.base_us,
            cell.ratio(),
            each.join(" ")
        );
    }
    let mean = geometric_mean(cells.iter().map(Cell::ratio));
    let middle = median(cells.iter().map(Cell::ratio));
    println!(
        "geometric mean {mean:.4}, median {middle:.4} of {} cells",
        cells.len()
    );
    let missed = missed(cells, is_twin);
    ensure!(
        missed.is_empty(),
        "limits are missed:\n{}",
        missed.join("\n")
    );
    println!("all limits are held");
    Ok(())
}

/// The cells above a limit.
fn missed(cells: &[Cell], is_twin: bool) -> Vec<String> {
    let mean = geometric_mean(cells.iter().map(Cell::ratio));
    let mut missed = Vec::new();
    if is_twin && TWIN_MAX < (mean - 1.0).abs() {
        missed.push(format!(
            "a build beside itself: geometric mean {mean:.4}, wanted within {TWIN_MAX} of 1: the \
             machine is not quiet enough; more --generations or --rounds help"
        ));
    }
    if MEAN_MAX < mean {
        missed.push(format!("geometric mean {mean:.4}, wanted <= {MEAN_MAX}"));
    }
    for cell in cells.iter().filter(|it| CELL_MAX < it.ratio()) {
        missed.push(format!(
            "{}, {} clients, {}: {:.3}, wanted <= {CELL_MAX}",
            cell.workload,
            cell.clients,
            cell.server,
            cell.ratio()
        ));
    }
    missed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::contestant::{BASE_URING, URING};
    use crate::sample::Count;

    fn point(server: &'static str, cpu_us: [f64; 3]) -> Point {
        let sample = |cpu_us| {
            let mut sample = Count::default().sample(0.0);
            sample.cpu_us = cpu_us;
            sample
        };
        Point {
            workload: "point_select".to_owned(),
            clients: 8,
            server,
            percent: None,
            step_count: 1.0,
            generations: vec![cpu_us.map(sample).to_vec()],
            shares: Vec::new(),
        }
    }

    fn cells(ratios: &[f64]) -> Vec<Cell> {
        let mut cells = Vec::new();
        for (clients, ratio) in (1..).zip(ratios) {
            let mut points = [
                point(URING, [10.0 * ratio; 3]),
                point(BASE_URING, [10.0; 3]),
            ];
            points.iter_mut().for_each(|it| it.clients = clients);
            add(&mut cells, &points).unwrap();
        }
        cells
    }

    /// Separate medians would give 1.5.
    #[test]
    fn cells_are_of_neighbouring_turns() {
        let points = [
            point(URING, [10.0, 30.0, 30.0]),
            point(BASE_URING, [10.0, 20.0, 30.0]),
        ];
        let mut cells = Vec::new();
        add(&mut cells, &points).unwrap();
        assert!((cells[0].ratio() - 1.0).abs() < 1e-9);
        add(
            &mut cells,
            &[point(URING, [40.0; 3]), point(BASE_URING, [10.0; 3])],
        )
        .unwrap();
        assert_eq!(cells.len(), 1);
        assert!((cells[0].ratio() - 2.0).abs() < 1e-9);
    }

    #[test]
    fn costs_are_judged_at_their_limits() {
        let count = |ratios: &[f64], is_twin| missed(&cells(ratios), is_twin).len();
        assert_eq!(count(&[1.019, 1.019], false), 0);
        assert_eq!(count(&[1.021, 1.021], false), 1);
        assert_eq!(count(&[1.059, 0.95], false), 0);
        assert_eq!(count(&[1.061, 0.95], false), 1);
        assert_eq!(count(&[1.009, 1.009], true), 0);
        assert_eq!(count(&[1.011, 1.011], true), 1);
        assert_eq!(count(&[0.989, 0.989], true), 1);
    }
}
