//! A child process whose output is kept, and the kernel's counters of it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, PipeReader, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// A running program. Killed by its id on drop.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// Copies output to the log file and looks for the expected line. Ends with the output.
    reader: Option<JoinHandle<()>>,
    /// Receives one message when the expected line came.
    ready: Receiver<()>,
}

impl Process {
    /// Starts a program whose standard output and error go to `log`. [`Process::wait_ready`] waits
    /// for a line that contains `ready_text`.
    pub fn start(command: &mut Command, log: &Path, ready_text: &'static str) -> Result<Process> {
        let name = format!("{command:?}");
        let mut log = File::create(log).with_context(|| log.display().to_string())?;
        let (output, writer) = std::io::pipe()?;
        command
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer);
        let child = command.spawn();
        // The command keeps its pipe ends; they would hold the pipe open for ever.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = child.with_context(|| format!("cannot start {name}"))?;
        let (sender, ready) = channel();
        let read = move || {
            copy_lines(output, &mut log, |line| {
                if line.contains(ready_text) {
                    // After the first such line the receiver may be gone.
                    sender.send(()).ok();
                }
            });
        };
        let reader = Builder::new().name("output".to_owned()).spawn(read)?;
        Ok(Process {
            child,
            reader: Some(reader),
            ready,
        })
    }

    /// Waits until the expected line was printed; fails if the program ends or `limit` passes.
    pub fn wait_ready(&mut self, limit: Duration) -> Result<()> {
        if self.ready.recv_timeout(limit).is_ok() {
            return Ok(());
        }
        match self.child.try_wait()? {
            Some(status) => bail!("ended with {status} before it was ready"),
            None => bail!("was not ready within {limit:?}"),
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks the program to end (SIGTERM) and waits for it.
    pub fn stop(&mut self) -> Result<ExitStatus> {
        self.signal(Signal::TERM)?;
        self.wait()
    }

    /// Ends the program at once, as a crash would (SIGKILL), and waits for it.
    pub fn kill(&mut self) -> Result<ExitStatus> {
        self.child.kill()?;
        self.wait()
    }

    /// File descriptors that the program has open.
    pub fn descriptor_count(&self) -> Result<u64> {
        let listed = fs::read_dir(format!("/proc/{}/fd", self.id()))?;
        Ok(u64::try_from(listed.count())?)
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill_process(self.pid()?, signal)?)
    }

    fn pid(&self) -> Result<Pid> {
        let id = i32::try_from(self.child.id()).context("process ids are small")?;
        Pid::from_raw(id).context("a process id is not 0")
    }

    /// Pauses the program (SIGSTOP): it uses no processor until [`Process::resume`]. When this
    /// returns, all its threads have stopped.
    pub fn pause(&self) -> Result<()> {
        self.signal(Signal::STOP)?;
        // The state is left for a later wait for the end.
        let or_gone = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(self.pid()?), or_gone)?;
        Ok(())
    }

    /// Resumes a paused program.
    pub fn resume(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// Waits for the end of the program and of its output.
    pub fn wait(&mut self) -> Result<ExitStatus> {
        let status = self.child.wait()?;
        if let Some(reader) = self.reader.take() {
            drop(reader.join());
        }
        Ok(status)
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Processor time used so far by all threads, user and system, in microseconds.
    pub fn cpu_us(&self) -> Result<u64> {
        cpu_us(self.id())
    }

    /// Memory in the process's resident set, in bytes.
    pub fn resident_bytes(&self) -> Result<u64> {
        resident_bytes(self.id())
    }

    /// The most that the resident set has been since the program's start, in bytes.
    pub fn resident_bytes_max(&self) -> Result<u64> {
        status_bytes(self.id(), "VmHWM:")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_running() {
            drop(self.kill());
        }
    }
}

/// Processor time of a process, user and system, in microseconds (`/proc/PID/stat`, whose unit is
/// 1/100 s on every current Linux).
pub fn cpu_us(id: u32) -> Result<u64> {
    const TICK_US: u64 = 10_000;
    let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
    // The second field is the program's name in parentheses and may contain blanks.
    let (_, rest) = stat
        .rsplit_once(')')
        .context("stat has a name in brackets")?;
    let ticks = |field: usize| -> Result<u64> {
        Ok(rest
            .split_whitespace()
            .nth(field)
            .context("stat has fifty fields")?
            .parse()?)
    };
    // utime and stime are fields 14 and 15 from 1; `rest` begins with field 3.
    Ok((ticks(11)? + ticks(12)?) * TICK_US)
}

/// Processor time of each thread of a process, user and system, to the nanosecond. It costs one
/// file for each thread, and the value of a running thread is up to a kernel tick old.
#[derive(Clone, Debug, Default)]
pub struct ThreadTimes {
    /// By the thread's id.
    ns: BTreeMap<u32, u64>,
}

impl ThreadTimes {
    /// The times of the living threads.
    pub fn of(process: u32) -> Result<ThreadTimes> {
        let mut times = ThreadTimes::default();
        for entry in fs::read_dir(format!("/proc/{process}/task"))? {
            let entry = entry?;
            // A thread may end in the meantime.
            let Ok(text) = fs::read_to_string(entry.path().join("schedstat")) else {
                continue;
            };
            let name = entry.file_name();
            let id = name.to_string_lossy().parse()?;
            let ns = text
                .split_whitespace()
                .next()
                .context("schedstat has three numbers")?;
            times.ns.insert(id, ns.parse()?);
        }
        Ok(times)
    }

    /// The time used since an earlier reading, without threads that have ended since.
    pub fn since_ns(&self, earlier: &ThreadTimes) -> u64 {
        let used = |(id, now): (&u32, &u64)| {
            let before = earlier.ns.get(id).copied().unwrap_or(0);
            now.saturating_sub(before)
        };
        self.ns.iter().map(used).sum()
    }
}

/// Bytes that a process has had the block devices read and write so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceBytes {
    pub read: u64,
    pub written: u64,
}

impl DeviceBytes {
    /// Of a process (`/proc/PID/io`). Only its owner and root may read them.
    pub fn of(id: u32) -> Result<DeviceBytes> {
        let text = fs::read_to_string(format!("/proc/{id}/io"))?;
        let value = |name: &str| -> Result<u64> {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let number = line.with_context(|| format!("no {name} of process {id}"))?;
            Ok(number.trim().parse()?)
        };
        Ok(DeviceBytes {
            read: value("read_bytes:")?,
            written: value("write_bytes:")?,
        })
    }

    /// What has come since an earlier reading.
    pub fn since(self, earlier: DeviceBytes) -> DeviceBytes {
        DeviceBytes {
            read: self.read.saturating_sub(earlier.read),
            written: self.written.saturating_sub(earlier.written),
        }
    }
}

/// How often the threads of a process have voluntarily gone to sleep so far; each sleep has one
/// wake-up.
pub fn sleep_count(id: u32) -> Result<u64> {
    let mut sum = 0;
    for thread in fs::read_dir(format!("/proc/{id}/task"))? {
        let status = fs::read_to_string(thread?.path().join("status"))?;
        let count = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
            .context("a thread's status counts its switches")?;
        sum += count.trim().parse::<u64>()?;
    }
    Ok(sum)
}

/// Resident set of a process in bytes.
pub fn resident_bytes(id: u32) -> Result<u64> {
    status_bytes(id, "VmRSS:")
}

/// A line of `/proc/PID/status` that counts KiB.
fn status_bytes(id: u32, name: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status
        .lines()
        .find(|line| line.starts_with(name))
        .with_context(|| format!("no {name} of process {id}"))?;
    let kib: u64 = line
        .split_whitespace()
        .nth(1)
        .with_context(|| format!("{name} has a number"))?
        .parse()?;
    Ok(kib * 1024)
}

/// Runs a program to its end and returns its output; fails, with the output, if it does.
pub fn run(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {command:?}"))?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        bail!("{command:?} ended with {}:\n{text}", output.status);
    }
    Ok(text)
}

fn copy_lines(from: PipeReader, to: &mut File, mut see: impl FnMut(&str)) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from
        .read_until(b'\n', &mut line)
        .is_ok_and(|count| count > 0)
    {
        see(&String::from_utf8_lossy(&line));
        // The log is for failures; a full disk shows elsewhere.
        drop(to.write_all(&line));
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Folder;

    #[test]
    fn readiness_is_a_line() {
        let folder = Folder::new("process").unwrap();
        let log = folder.path().join("log");
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo ready >&2; exec tail -f /dev/null"]);
        let mut process = Process::start(&mut command, &log, "ready").unwrap();
        process.wait_ready(Duration::from_secs(30)).unwrap();
        assert!(process.is_running());
        let now = process.resident_bytes().unwrap();
        // The kernel updates both in batches, so one may be ahead of the other.
        assert!(0 < now && 0 < process.resident_bytes_max().unwrap());
        assert!(process.cpu_us().unwrap() < 10_000_000);
        process.stop().unwrap();
        assert!(!process.is_running());
        assert_eq!(fs::read_to_string(log).unwrap(), "one\nready\n");
    }

    #[test]
    fn time_of_threads_grows_with_work() {
        let id = std::process::id();
        let before = ThreadTimes::of(id).unwrap();
        let mut sum = 0_u64;
        let used_ns = loop {
            sum = std::hint::black_box(sum.wrapping_mul(31) + 1);
            let used_ns = ThreadTimes::of(id).unwrap().since_ns(&before);
            if 1_000_000 < used_ns {
                break used_ns;
            }
        };
        assert!(used_ns < 60_000_000_000, "{used_ns}");
        assert_eq!(before.since_ns(&before), 0);
    }

    #[test]
    fn what_is_written_through_is_counted() {
        let folder = Folder::new("process").unwrap();
        let id = std::process::id();
        let before = DeviceBytes::of(id).unwrap();
        let mut file = File::create(folder.path().join("file")).unwrap();
        file.write_all(&[1; 65536]).unwrap();
        file.sync_all().unwrap();
        let after = DeviceBytes::of(id).unwrap();
        assert!(65536 <= after.since(before).written, "{after:?}");
        assert_eq!(before.since(after).written, 0);
        assert!(DeviceBytes::of(0).is_err());
    }

    #[test]
    fn early_end_is_an_error() {
        let folder = Folder::new("process").unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "exit 3"]);
        let log = folder.path().join("log");
        let mut process = Process::start(&mut command, &log, "ready").unwrap();
        process.wait().unwrap();
        let error = process.wait_ready(Duration::from_secs(30)).unwrap_err();
        assert!(error.to_string().contains("before it was ready"), "{error}");
        let error = run(Command::new("sh").args(["-c", "echo why >&2; exit 2"])).unwrap_err();
        assert!(error.to_string().contains("why"));
    }
}
