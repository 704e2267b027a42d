//! The statements that change one row of the data table.

use super::*;

impl Torture {
    /// One statement: a row is looked up with a lock or claimed, then inserted, changed, moved or
    /// removed. If another was faster, it is looked up again, with a lock.
    pub(super) async fn change(
        &self,
        data: &Rc<dyn Table>,
        session: &mut Session,
        random: &mut Random,
        writes: &mut Writes,
    ) -> Result<(), End> {
        let key = self.random_key(random);
        let mut lock = match random.below(3) {
            0 => RowLock::Exclusive,
            _ => RowLock::Claim,
        };
        loop {
            let named = ScanOptions {
                index: Some(0),
                range: KeyRange::equal(vec![Value::Int(key)]),
                lock,
                wait: LockWait::Wait,
                pushed: None,
                ..all()
            };
            let found = session.scan(data, named).await;
            let found = found.map_err(|error| self.meet(error))?;
            let new = self.random_row(key, random);
            let is_changed = match found.first() {
                None => {
                    self.insert(data, session, &new, writes).await?;
                    false
                }
                Some(row) if random.below(3) == 0 => {
                    self.delete(data, session, row, writes).await? == Mutation::Changed
                }
                Some(row) => {
                    let change = (row, new, &mut *random);
                    self.update(data, session, change, writes).await? == Mutation::Changed
                }
            };
            if !is_changed {
                return Ok(());
            }
            expect(lock == RowLock::Claim, "a locked row stays as it is")?;
            self.history.borrow_mut().tally.lost_claims += 1;
            lock = RowLock::Exclusive;
        }
    }

    pub(super) async fn delete(
        &self,
        data: &Rc<dyn Table>,
        session: &mut Session,
        row: &Row,
        writes: &mut Writes,
    ) -> Result<Mutation, End> {
        let done = session.delete(data, &row.0).await;
        let done = done.map_err(|error| self.meet(error))?;
        expect(
            done != Mutation::Gone,
            "a row that was found is there to be deleted",
        )?;
        if done == Mutation::Done {
            writes.insert(integer(&row.1[0]), None);
        }
        Ok(done)
    }

    pub(super) async fn insert(
        &self,
        data: &Rc<dyn Table>,
        session: &mut Session,
        new: &[Value],
        writes: &mut Writes,
    ) -> Result<(), End> {
        let inserted = session.insert(data, new).await;
        if inserted.map_err(|error| self.meet(error))? == Inserted::Done {
            let (key, row) = data_of(new);
            writes.insert(key, Some(row));
        }
        Ok(())
    }

    async fn update(
        &self,
        data: &Rc<dyn Table>,
        session: &mut Session,
        (row, mut new, random): (&Row, Vec<Value>, &mut Random),
        writes: &mut Writes,
    ) -> Result<Mutation, End> {
        let old_key = integer(&row.1[0]);
        if random.below(6) == 0 {
            new[0] = Value::Int(self.random_key(random));
        }
        if random.below(2) == 0 {
            new[2] = row.1[2].clone();
        }
        let updated = session.update(data, &row.0, &new).await;
        let updated = updated.map_err(|error| self.meet(error))?;
        expect(
            updated != Mutation::Gone,
            "a row that was found is there to be changed",
        )?;
        if updated == Mutation::Done {
            let (key, row) = data_of(&new);
            writes.insert(old_key, None);
            writes.insert(key, Some(row));
        }
        Ok(updated)
    }
}
