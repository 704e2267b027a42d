//! What a check has found, and how much of it is told.

use std::collections::BTreeMap;
use std::fmt::Display;

use format::{PageId, PageNo, SpaceId};

use super::page_set::PageSet;

/// Damaged pages that are named; of others it is told how many there are.
const PAGES_NAMED_MAX: usize = 1000;
/// Other faults that are told one by one, and how many of one tablespace, so that one whose every
/// row is wrong leaves room for those of the rest.
const FAULTS_NAMED_MAX: usize = 1000;
const SPACE_FAULTS_NAMED_MAX: usize = 20;

/// What a check has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Tables looked at.
    pub table_count: u64,
    /// Rows looked at.
    pub row_count: u64,
    /// Undo segments looked at, and the records in them.
    pub segment_count: u64,
    /// Undo records looked at.
    pub record_count: u64,
    /// Pages that belong to something and were looked at.
    pub page_count: u64,
    /// Files of tablespaces that were read from end to end.
    pub file_count: u64,
    /// Pages in these files.
    pub file_page_count: u64,
    /// What is wrong, one sentence each, as far as it is named.
    pub faults: Vec<String>,
    /// Damaged pages that are not named in `faults`.
    pub unnamed_page_count: u64,
    /// Other faults that are not named there.
    pub unnamed_fault_count: u64,
    /// Damaged pages that are.
    named_page_count: usize,
    /// Damaged pages of each tablespace, named or not: none is told twice.
    damaged: BTreeMap<SpaceId, PageSet>,
}

impl CheckReport {
    /// Everything that is wrong, named or not.
    pub fn fault_count(&self) -> u64 {
        stdx::to_u64(self.faults.len()) + self.unnamed_page_count + self.unnamed_fault_count
    }

    /// Tells of a page that cannot be read, or that contradicts itself, unless that was told.
    pub(crate) fn damage(&mut self, id: PageId, what: &dyn Display) {
        if !self.damaged.entry(id.space).or_default().insert(id.page) {
            return;
        }
        if self.named_page_count < PAGES_NAMED_MAX {
            self.named_page_count += 1;
            self.faults.push(what.to_string());
        } else {
            self.unnamed_page_count += 1;
        }
    }

    /// Tells of anything else.
    pub(crate) fn fault(&mut self, fault: String) {
        if self.faults.len() - self.named_page_count < FAULTS_NAMED_MAX {
            self.faults.push(fault);
        } else {
            self.unnamed_fault_count += 1;
        }
    }
}

/// The pages of a tablespace that something owns, and what is wrong there.
pub(crate) struct Audit<'a> {
    pub(crate) report: &'a mut CheckReport,
    /// Hears of each page that was looked at.
    pub(crate) progress: &'a mut dyn FnMut(&CheckReport),
    pub(crate) space: SpaceId,
    /// Whose tablespace it is, for people.
    pub(crate) owner: String,
    pub(crate) used: PageSet,
    /// Not everything could be looked at: pages that nothing was seen to own may be owned.
    pub(crate) is_partial: bool,
    /// Faults found here.
    fault_count: usize,
}

impl<'a> Audit<'a> {
    pub(crate) fn new(
        space: SpaceId,
        owner: String,
        report: &'a mut CheckReport,
        progress: &'a mut dyn FnMut(&CheckReport),
    ) -> Self {
        Self {
            report,
            progress,
            space,
            owner,
            used: PageSet::default(),
            is_partial: false,
            fault_count: 0,
        }
    }

    pub(crate) fn id(&self, page: PageNo) -> PageId {
        PageId::new(self.space, page)
    }

    /// Notes a page that was looked at. What is owned twice is a fault: false then.
    pub(crate) fn own(&mut self, page: PageNo) -> bool {
        self.report.page_count += 1;
        (self.progress)(self.report);
        let is_new = self.used.insert(page);
        if !is_new {
            let id = self.id(page);
            self.fault(format!("page {id} is used twice"));
        }
        is_new
    }

    /// Tells of a page that cannot be read or makes no sense: what it leads to stays unseen.
    pub(crate) fn damage(&mut self, page: PageNo, what: &dyn Display) {
        self.is_partial = true;
        let told = format!("{what} (of {})", self.owner);
        self.report.damage(PageId::new(self.space, page), &told);
    }

    /// Tells of anything else that is wrong here.
    pub(crate) fn fault(&mut self, fault: String) {
        self.fault_count += 1;
        if self.fault_count <= SPACE_FAULTS_NAMED_MAX {
            self.report.fault(fault);
        } else {
            self.report.unnamed_fault_count += 1;
        }
    }

    /// Says how many faults were not named.
    pub(crate) fn end(&mut self) {
        let unnamed = self.fault_count.saturating_sub(SPACE_FAULTS_NAMED_MAX);
        if unnamed != 0 {
            // The line stands for one of them.
            self.report.unnamed_fault_count -= 1;
            let owner = &self.owner;
            self.report
                .fault(format!("{unnamed} more faults in {owner}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_bounded_and_the_rest_is_counted() {
        let mut report = CheckReport::default();
        let pages = u32::try_from(PAGES_NAMED_MAX).unwrap();
        for round in 0..2 {
            for page in 0..pages + 5 {
                let id = PageId::new(SpaceId(7), PageNo(page));
                report.damage(id, &format!("page {page} in round {round}"));
            }
        }
        assert_eq!(report.unnamed_page_count, 5);
        for space in 0..100 {
            let mut ignore = |_: &CheckReport| {};
            let owner = format!("table t{space}");
            let mut audit = Audit::new(SpaceId(space), owner, &mut report, &mut ignore);
            (0..25).for_each(|fault| audit.fault(format!("fault {fault}")));
            audit.end();
        }
        assert_eq!(report.faults.len(), PAGES_NAMED_MAX + FAULTS_NAMED_MAX);
        assert_eq!(report.fault_count(), u64::from(pages) + 5 + 100 * 25);
        assert_eq!(
            report.faults[PAGES_NAMED_MAX + 20],
            "5 more faults in table t0"
        );
    }
}
