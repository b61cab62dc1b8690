//! All claims that are prepared on the node.

use std::collections::BTreeMap;

use super::Claim;

/// Claims at a time: some for each of the pods that a node can have.
pub const MAX_CLAIMS: usize = 4096;

/// There is no room for another claim.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{MAX_CLAIMS} claims are prepared on this node, which is all that fit")]
pub struct TooMany;

/// Prepared claims by UID.
///
/// Invariant: at most [`MAX_CLAIMS`].
#[derive(Clone, Debug, Default)]
pub struct Claims(BTreeMap<String, Claim>);

impl Claims {
    /// Adds a claim, or replaces the one of its UID.
    ///
    /// # Errors
    /// [`TooMany`].
    pub fn insert(&mut self, claim: Claim) -> Result<(), TooMany> {
        if self.0.len() >= MAX_CLAIMS && !self.0.contains_key(&claim.uid) {
            return Err(TooMany);
        }
        self.0.insert(claim.uid.clone(), claim);
        Ok(())
    }

    /// Removes a claim, if it is there.
    pub fn remove(&mut self, uid: &str) -> Option<Claim> {
        self.0.remove(uid)
    }

    /// The claim of a UID.
    pub fn get(&self, uid: &str) -> Option<&Claim> {
        self.0.get(uid)
    }

    /// The claims of a pod, by their UIDs' order.
    pub fn of_pod(&self, uid: &str) -> impl Iterator<Item = &Claim> {
        self.0.values().filter(move |claim| claim.pod.uid == uid)
    }

    /// All claims.
    pub fn iter(&self) -> impl Iterator<Item = &Claim> {
        self.0.values()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(number: usize) -> Claim {
        Claim { uid: number.to_string(), ..Claim::default() }
    }

    #[test]
    fn no_more_claims_than_fit_are_taken_and_one_that_is_there_can_be_replaced() {
        let mut claims = Claims::default();
        for number in 0..MAX_CLAIMS {
            claims.insert(claim(number)).unwrap();
        }
        assert_eq!(claims.insert(claim(MAX_CLAIMS)), Err(TooMany));
        let renamed = Claim { name: "renamed".to_owned(), ..claim(7) };
        claims.insert(renamed).unwrap();
        assert_eq!((claims.len(), claims.get("7").unwrap().name.as_str()), (MAX_CLAIMS, "renamed"));
        claims.remove("8").unwrap();
        claims.insert(claim(MAX_CLAIMS)).unwrap();
    }
}
