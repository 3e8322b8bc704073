//! The output queue of records: bounded, with one plain thread that writes.
//!
//! The writers of records never wait for the reader of the output: when the queue is full, the oldest records are
//! dropped and counted. Must never wait for anything except its own lock, which is held only to move a pointer.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The limit of waiting bytes; a single record may be longer.
const LIMIT: usize = 8 << 20;
/// The approximate number of bytes per write.
const BATCH: usize = 64 << 10;

/// A queue and its thread. Clones share both.
#[derive(Clone)]
pub struct Spool(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    /// Notified when a record was added.
    filled: Condvar,
    /// Notified when everything was written.
    emptied: Condvar,
    lost: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    records: VecDeque<Vec<u8>>,
    bytes: usize,
    /// The number of lost records that were not reported yet.
    untold: usize,
    /// Whether the thread holds records that are not written yet.
    is_writing: bool,
}

/// Reports the number of lost records, once records can be written again.
pub type Tell = fn(usize);

impl Spool {
    /// Starts the thread, which runs as long as the process.
    pub fn start(name: &str, writer: impl Write + Send + 'static, tell: Tell) -> io::Result<Self> {
        let spool = Self(Arc::new(Shared {
            queue: Mutex::default(),
            filled: Condvar::new(),
            emptied: Condvar::new(),
            lost: AtomicUsize::new(0),
        }));
        let own = spool.clone();
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || own.write_on(writer, tell))?;
        Ok(spool)
    }

    /// Adds a record to the queue.
    pub fn put(&self, record: Vec<u8>) {
        let mut queue = self.queue();
        queue.bytes += record.len();
        queue.records.push_back(record);
        let mut lost = 0;
        while queue.bytes > LIMIT && queue.records.len() > 1 {
            let oldest = queue.records.pop_front().map_or(0, |oldest| oldest.len());
            queue.bytes -= oldest;
            lost += 1;
        }
        queue.untold += lost;
        drop(queue);
        self.0.lost.fetch_add(lost, Ordering::Relaxed);
        self.0.filled.notify_one();
    }

    /// Waits until all records are written, at most for `within`.
    pub fn flush(&self, within: Duration) {
        let is_busy = |queue: &mut Queue| queue.is_writing || !queue.records.is_empty() || queue.untold > 0;
        let waited = self.0.emptied.wait_timeout_while(self.queue(), within, is_busy);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// The number of records that were lost since the last call.
    pub fn take_lost(&self) -> usize {
        self.0.lost.swap(0, Ordering::Relaxed)
    }

    fn write_on(&self, mut writer: impl Write, tell: Tell) {
        loop {
            let (batch, untold) = self.next();
            if !batch.is_empty() {
                // If the log cannot be written, there is nowhere to report it.
                drop(writer.write_all(&batch).and_then(|()| writer.flush()));
            }
            if untold > 0 {
                tell(untold);
            }
        }
    }

    /// Waits for the next records to write. If the queue is empty after that, it also returns the number of lost
    /// records.
    fn next(&self) -> (Vec<u8>, usize) {
        let mut queue = self.queue();
        queue.is_writing = false;
        while queue.records.is_empty() && queue.untold == 0 {
            self.0.emptied.notify_all();
            queue = self.0.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        let mut batch = Vec::new();
        while batch.len() < BATCH
            && let Some(record) = queue.records.pop_front()
        {
            queue.bytes -= record.len();
            batch.extend(record);
        }
        queue.is_writing = true;
        let untold = if queue.records.is_empty() {
            std::mem::take(&mut queue.untold)
        } else {
            0
        };
        (batch, untold)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Each write is one record.
impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.put(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Spool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spool").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::sync::mpsc;

    use super::*;

    const NOT_LONG: Duration = Duration::from_millis(10);
    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn nobody_waits_for_a_reader_and_the_newest_are_kept() {
        static TOLD: AtomicUsize = AtomicUsize::new(0);
        let (reader, writer) = io::pipe().unwrap();
        let spool = Spool::start("test", writer, |lost| {
            TOLD.fetch_add(lost, Ordering::Relaxed);
        })
        .unwrap();
        let record = |number: usize| format!("{number:0>1023}\n").into_bytes();
        // Twice as much as the queue and the pipe can hold.
        let last = 2 * LIMIT / 1024;
        let (said, everything) = mpsc::channel();
        let talkative = spool.clone();
        thread::spawn(move || {
            (0..=last).for_each(|number| talkative.put(record(number)));
            said.send(()).unwrap();
        });
        everything
            .recv_timeout(LONG)
            .expect("who has something to say waits for a reader");
        spool.flush(NOT_LONG);
        let lost = spool.take_lost();
        assert!(lost > 0);
        assert_eq!(TOLD.load(Ordering::Relaxed), 0, "nobody could have read it");

        let (sender, numbers) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(reader).lines() {
                sender.send(line.unwrap().parse::<usize>().unwrap()).unwrap();
            }
        });
        spool.flush(LONG);
        assert_eq!(spool.take_lost(), 0);
        assert_eq!(TOLD.load(Ordering::Relaxed), lost);
        let read: Vec<usize> = std::iter::from_fn(|| numbers.recv_timeout(LONG).ok())
            .take(last + 1 - lost)
            .collect();
        assert!(read.is_sorted(), "in their order, and whole");
        assert_eq!(read.last(), Some(&last));
    }

    #[test]
    fn a_record_that_is_longer_than_the_queue_goes_alone() {
        let (mut reader, writer) = io::pipe().unwrap();
        let spool = Spool::start("test", writer, |_| {}).unwrap();
        thread::spawn(move || io::copy(&mut reader, &mut io::sink()));
        spool.put(vec![b'a'; LIMIT + 1]);
        spool.flush(LONG);
        assert_eq!(spool.take_lost(), 0);
    }
}
