//! ADD: once for each attachment, whatever has become of the ADDs before.

use serde_json::Value;
use shunt::call::Verb;

use crate::cache::Cached;
use crate::chain::Chain;
use crate::failure::{Failure, codes, logged};
use crate::list::PluginConfig;
use crate::netns_id::Now;
use crate::plugin::{Plugin, Surroundings};
use crate::subject::Subject;

/// What ADD has made.
#[derive(Debug)]
pub(crate) struct Added {
    /// The last plugin's result.
    pub(crate) result: Vec<u8>,
    /// Whether there was no attachment before.
    pub(crate) is_new: bool,
}

/// What becomes of an attachment that is known.
enum Known {
    /// CHECK finds it.
    Whole,
    /// CHECK cannot be asked: the list is too old for it, or has `disableCheck`.
    Unchecked,
    /// CHECK finds something.
    Broken(Failure),
}

type Plugins<'a> = [(Plugin, &'a PluginConfig)];

impl Chain<'_> {
    /// ADD. The same request once more answers what is cached, where CHECK finds it whole, or cannot be asked and the namespace is still the same; another one
    /// for an attachment that CHECK finds whole is refused. What an ADD has left that a killed process has begun is deleted first; so is an attachment in a
    /// namespace that is not at its path any more, since another one is there: the new one is not entered for that.
    ///
    /// # Errors
    /// The failed plugin's. The plugins before it are undone, and the failed one, if it is not shunt; not where there has been an attachment before, which
    /// would go with them. Code 106 for an attachment of another request, 7 for a plugin that is nowhere, 4 and 106 for names of which there can be no
    /// cached result: nothing was begun.
    pub(crate) fn add(&self) -> Result<Added, Failure> {
        let (network, subject) = (&self.list.name, self.at.subject);
        self.cache.admits(network, subject)?;
        self.begun.admits(network, subject)?;
        let now = (self.netns_id)(&subject.netns);
        let Some(known) = self.cached() else { return self.add_first(now) };
        self.end();
        let place = known.compare(&subject.netns, now.as_deref());
        if place == Now::Replaced {
            self.delete_cached(&known.without_netns()).map_err(|failure| left("attachment", failure))?;
            return self.add_first(now);
        }
        let is_same = known.is_of(self.list, subject);
        let found = self.look_at(&known);
        let broken = match found {
            Known::Whole if !is_same => return Err(self.taken()),
            Known::Unchecked if !is_same || place != Now::Same => None,
            Known::Whole | Known::Unchecked => {
                return Ok(Added { result: known.result.to_string().into_bytes(), is_new: false });
            }
            Known::Broken(failure) => Some(failure),
        };
        let begun = self.to_cache(now);
        let made = self.run_all(&self.plugins()?).map_err(|(failure, _)| told(failure, broken.as_ref()))?;
        let result = made.to_string().into_bytes();
        self.cache.write(&begun.with(made))?;
        Ok(Added { result, is_new: false })
    }

    /// ADD of an attachment that is not known.
    fn add_first(&self, now: Option<String>) -> Result<Added, Failure> {
        let (network, subject) = (&self.list.name, self.at.subject);
        let plugins = self.plugins()?;
        if let Some(begun) = self.begun.read(network, subject) {
            let begun = match begun.compare(&subject.netns, now.as_deref()) {
                Now::Replaced => begun.without_netns(),
                Now::Same | Now::Unknown => begun,
            };
            self.delete_cached(&begun).map_err(|failure| left("ADD that was not finished", failure))?;
        }
        let begun = self.to_cache(now);
        self.begun.write(&begun)?;
        let made = match self.run_all(&plugins) {
            Ok(result) => begun.with(result),
            Err((failure, None)) => {
                self.end();
                return Err(failure);
            }
            Err((failure, Some(result))) => {
                self.undo(&result);
                return Err(failure);
            }
        };
        if let Err(failure) = self.cache.write(&made) {
            self.undo(&made.result);
            return Err(failure);
        }
        self.end();
        Ok(Added { result: made.result.to_string().into_bytes(), is_new: true })
    }

    /// No ADD is in the middle. A mark that stays beside a result goes with the next ADD, Delete or GC.
    fn end(&self) {
        let removed = self.begun.remove(&self.list.name, self.at.subject);
        if let Err(failure) = removed {
            let error = &*logged(&failure.msg);
            tracing::warn!(error, "the mark of an ADD that has ended could not be removed");
        }
    }

    /// What is to be known of the attachment, but for its result: with the namespace that is there before anything is done.
    fn to_cache(&self, now: Option<String>) -> Cached {
        Cached::of(self.list, self.at.subject, (now, Value::Null))
    }

    /// Whether the attachment is what its result says.
    fn look_at(&self, known: &Cached) -> Known {
        let list = match known.list() {
            Ok(list) => list,
            Err(failure) => return Known::Broken(failure),
        };
        let subject = known.subject();
        match self.at.settings.namespace(&subject.netns) {
            Err(failure) => return Known::Broken(failure),
            Ok(None) => return Known::Broken(Failure::new(codes::INVALID_NETNS, "its namespace is gone")),
            Ok(Some(_)) => {}
        }
        if list.version < Verb::Check.since() || !list.is_checked {
            return Known::Unchecked;
        }
        let made = Chain { list: &list, at: Surroundings { subject: &subject, ..self.at }, ..*self };
        made.each(Verb::Check, Some(&known.result)).map_or_else(Known::Broken, |()| Known::Whole)
    }

    fn plugins(&self) -> Result<Vec<(Plugin, &PluginConfig)>, Failure> {
        self.list.plugins.iter().map(|config| Ok((self.find(config)?, config))).collect()
    }

    /// The last plugin's result; or what has failed, and what was made before that is to be undone.
    fn run_all(&self, plugins: &Plugins<'_>) -> Result<Value, (Failure, Option<Value>)> {
        let mut result = None;
        for (plugin, config) in plugins {
            let done = self.run(plugin, Verb::Add, config, result.as_ref());
            match done.and_then(|output| read_result(config, &output)) {
                Ok(next) => result = Some(next),
                // shunt's own has undone what it did.
                Err(failure) if result.is_none() && plugin.is_own() && !failure.is_fault() => {
                    return Err((failure, None));
                }
                Err(failure) => return Err((failure, Some(result.unwrap_or_default()))),
            }
        }
        Ok(result.unwrap_or_default())
    }

    /// Takes down what was made. What cannot be is known to be begun, and the next ADD or GC tries again.
    fn undo(&self, result: &Value) {
        let result = Some(result).filter(|result| !result.is_null());
        let undone =
            self.take_down(result).and_then(|()| self.begun.remove(&self.list.name, self.at.subject));
        undone.unwrap_or_else(|failure| self.warn("an ADD that failed", &failure));
    }

    fn warn(&self, what: &str, failure: &Failure) {
        let (network, container) = (&self.list.name, &self.at.subject.container);
        let error = &*logged(&failure.msg);
        tracing::warn!(network, container, error, "{what} could not be undone: it needs a DEL");
    }

    fn taken(&self) -> Failure {
        let (network, Subject { container, ifname, .. }) = (&self.list.name, self.at.subject);
        let why = format!(
            "{ifname} of {container} is attached to {network} already, by another request: delete it first"
        );
        Failure::new(codes::EXISTS, why)
    }
}

/// What a plugin says to a repeated ADD, with what CHECK has said.
fn told(failure: Failure, broken: Option<&Failure>) -> Failure {
    let Some(broken) = broken.filter(|_| failure.code == codes::EXISTS) else { return failure };
    let between = if failure.details.is_empty() { "" } else { "; " };
    // The end is what is cut.
    let details = format!(
        "CHECK of the attachment failed with code {}: {}{between}{}",
        broken.code, broken.msg, failure.details
    );
    Failure { details, ..failure }
}

/// Something from before could not be deleted. It is still known, for the next ADD or a DEL.
fn left(what: &str, failure: Failure) -> Failure {
    Failure { msg: format!("DEL of an earlier {what}: {}", failure.msg), ..failure }
}

fn read_result(config: &PluginConfig, output: &[u8]) -> Result<Value, Failure> {
    match serde_json::from_slice(output) {
        Ok(result @ Value::Object(_)) => Ok(result),
        _ => Err(Failure::new(codes::DECODING, format!("the plugin {} printed no result", config.kind))),
    }
}

#[cfg(test)]
#[path = "add_tests.rs"]
mod tests;
