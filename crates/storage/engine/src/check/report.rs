//! The findings of a check, and how many of them are named.
//!
//! Jobs note their findings in an [`Audit`] of their own, so they share nothing.

use std::collections::BTreeMap;
use std::fmt::Display;

use format::{PageId, PageNo, SpaceId};

use super::page_set::PageSet;

/// Damaged pages that are named; others are only counted.
const PAGES_NAMED_MAX: usize = 1000;
/// Other faults that are named, and how many of them of one tablespace. So a tablespace with a
/// fault in every row leaves room for the faults of the rest.
const FAULTS_NAMED_MAX: usize = 1000;
const SPACE_FAULTS_NAMED_MAX: usize = 20;

/// The findings of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Tables checked.
    pub table_count: u64,
    /// Rows checked.
    pub row_count: u64,
    /// Undo segments checked.
    pub segment_count: u64,
    /// Undo records checked.
    pub record_count: u64,
    /// Pages checked that have an owner.
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
    /// Damaged pages that are named there.
    named_page_count: usize,
    /// Damaged pages of each tablespace, named or not, so that none is reported twice.
    damaged: BTreeMap<SpaceId, PageSet>,
}

impl CheckReport {
    /// All faults, named or not.
    pub fn fault_count(&self) -> u64 {
        stdx::to_u64(self.faults.len()) + self.unnamed_page_count + self.unnamed_fault_count
    }

    /// Reports a fault that belongs to no page.
    pub(crate) fn fault(&mut self, fault: String) {
        if self.faults.len() - self.named_page_count < FAULTS_NAMED_MAX {
            self.faults.push(fault);
        } else {
            self.unnamed_fault_count += 1;
        }
    }

    fn damage(&mut self, id: PageId, what: String) {
        if !self.damaged.entry(id.space).or_default().insert(id.page) {
            return;
        }
        if self.named_page_count < PAGES_NAMED_MAX {
            self.named_page_count += 1;
            self.faults.push(what);
        } else {
            self.unnamed_page_count += 1;
        }
    }

    /// Adds the findings of a tablespace. A page that was reported before is not reported again.
    pub(crate) fn take(&mut self, audit: Audit) {
        self.page_count += audit.page_count;
        self.row_count += audit.row_count;
        self.record_count += audit.record_count;
        self.file_count += audit.file_count;
        self.file_page_count += audit.file_page_count;
        let unnamed = audit.unnamed();
        for finding in audit.findings {
            match finding {
                Finding::Damage(page, what) => self.damage(PageId::new(audit.space, page), what),
                Finding::Fault(fault) => self.fault(fault),
            }
        }
        let known = self.damaged.entry(audit.space).or_default();
        for page in audit.damaged.range(0..=u32::MAX) {
            self.unnamed_page_count += u64::from(known.insert(page));
        }
        if unnamed != 0 {
            let owner = &audit.owner;
            self.fault(format!("{unnamed} more faults in {owner}"));
            // The summary line counts as one of them.
            self.unnamed_fault_count += stdx::to_u64(unnamed) - 1;
        }
    }
}

/// A single finding.
#[derive(Debug)]
enum Finding {
    /// A page that cannot be read, or that contradicts itself.
    Damage(PageNo, String),
    /// Anything else.
    Fault(String),
}

/// The pages of a tablespace that have owners, and what is wrong there. Each job has one; those of
/// one tablespace are joined.
pub(crate) struct Audit {
    pub(crate) space: SpaceId,
    /// The tablespace's owner, for people.
    pub(crate) owner: String,
    pub(crate) used: PageSet,
    /// Not everything could be read, so pages without a known owner may have one.
    pub(crate) is_partial: bool,
    /// Pages checked that have an owner.
    pub(crate) page_count: u64,
    pub(crate) row_count: u64,
    pub(crate) record_count: u64,
    /// Files that could be opened, and their pages.
    pub(crate) file_count: u64,
    pub(crate) file_page_count: u64,
    /// In the order in which they were found.
    findings: Vec<Finding>,
    /// Damaged pages, in `findings` or not.
    damaged: PageSet,
    damaged_count: usize,
    /// Other faults, in `findings` or not.
    fault_count: usize,
}

impl Audit {
    pub(crate) fn new(space: SpaceId, owner: String) -> Self {
        Self {
            space,
            owner,
            used: PageSet::default(),
            is_partial: false,
            page_count: 0,
            row_count: 0,
            record_count: 0,
            file_count: 0,
            file_page_count: 0,
            findings: Vec::new(),
            damaged: PageSet::default(),
            damaged_count: 0,
            fault_count: 0,
        }
    }

    pub(crate) fn id(&self, page: PageNo) -> PageId {
        PageId::new(self.space, page)
    }

    /// Notes a page that was checked. Returns false, and notes a fault, if it already has an owner.
    pub(crate) fn own(&mut self, page: PageNo) -> bool {
        self.page_count += 1;
        self.use_page(page)
    }

    fn use_page(&mut self, page: PageNo) -> bool {
        let is_new = self.used.insert(page);
        if !is_new {
            let id = self.id(page);
            self.fault(format!("page {id} is used twice"));
        }
        is_new
    }

    /// Notes a page that cannot be read or makes no sense. What it leads to stays unchecked.
    pub(crate) fn damage(&mut self, page: PageNo, what: &dyn Display) {
        self.is_partial = true;
        let told = format!("{what} (of {})", self.owner);
        self.damage_of_file(page, told);
    }

    /// As `damage`, for pages whose owner does not matter.
    pub(crate) fn damage_of_file(&mut self, page: PageNo, what: String) {
        if !self.damaged.insert(page) {
            return;
        }
        if self.damaged_count < PAGES_NAMED_MAX {
            self.findings.push(Finding::Damage(page, what));
        }
        self.damaged_count += 1;
    }

    /// Notes any other fault.
    pub(crate) fn fault(&mut self, fault: String) {
        if self.fault_count < SPACE_FAULTS_NAMED_MAX {
            self.findings.push(Finding::Fault(fault));
        }
        self.fault_count += 1;
    }

    /// All faults, named or not.
    pub(crate) fn fault_count(&self) -> u64 {
        stdx::to_u64(self.fault_count + self.damaged_count)
    }

    /// Other faults that are not in `findings`.
    fn unnamed(&self) -> usize {
        self.fault_count.saturating_sub(SPACE_FAULTS_NAMED_MAX)
    }

    /// Adds the findings of another part of the same tablespace.
    pub(crate) fn join(&mut self, part: Self) {
        assert_eq!(self.space, part.space);
        let unnamed = part.unnamed();
        self.is_partial |= part.is_partial;
        self.page_count += part.page_count;
        self.row_count += part.row_count;
        self.record_count += part.record_count;
        self.file_count += part.file_count;
        self.file_page_count += part.file_page_count;
        for finding in part.findings {
            match finding {
                Finding::Damage(page, what) => self.damage_of_file(page, what),
                Finding::Fault(fault) => self.fault(fault),
            }
        }
        for page in part.damaged.range(0..=u32::MAX) {
            self.damaged_count += usize::from(self.damaged.insert(page));
        }
        self.fault_count += unnamed;
        for page in part.used.range(0..=u32::MAX) {
            self.use_page(page);
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
            let mut audit = Audit::new(SpaceId(7), "table t7".to_owned());
            for page in 0..pages + 5 {
                audit.damage(PageNo(page), &format!("page {page} in round {round}"));
            }
            report.take(audit);
        }
        assert_eq!(report.unnamed_page_count, 5);
        for space in 0..100 {
            let owner = format!("table t{space}");
            let mut audit = Audit::new(SpaceId(space), owner.clone());
            // Found in two parts.
            for faults in [0..23, 23..25] {
                let mut part = Audit::new(SpaceId(space), owner.clone());
                faults.for_each(|fault| part.fault(format!("fault {fault}")));
                audit.join(part);
            }
            report.take(audit);
        }
        assert_eq!(report.faults.len(), PAGES_NAMED_MAX + FAULTS_NAMED_MAX);
        assert_eq!(report.fault_count(), u64::from(pages) + 5 + 100 * 25);
        assert_eq!(
            report.faults[PAGES_NAMED_MAX + 20],
            "5 more faults in table t0"
        );
    }

    #[test]
    fn parts_of_a_tablespace_are_put_together() {
        let mut whole = Audit::new(SpaceId(7), "table t".to_owned());
        for number in 0..2 {
            let mut part = Audit::new(SpaceId(7), "table t".to_owned());
            part.own(PageNo(number));
            part.own(PageNo(9));
            part.damage(PageNo(9), &"damaged");
            part.row_count = 3;
            whole.join(part);
        }
        assert!(whole.is_partial);
        assert_eq!((whole.page_count, whole.row_count), (4, 6));
        assert_eq!(whole.fault_count(), 2);
        let mut report = CheckReport::default();
        report.take(whole);
        assert_eq!(
            report.faults,
            ["damaged (of table t)", "page 7:9 is used twice"]
        );
    }
}
