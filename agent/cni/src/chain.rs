//! A list's plugins one after the other, as libcni runs them.

use serde_json::{Map, Value, json};
use shunt::call::{Verb, Version};

use crate::cache::{Cache, Cached};
use crate::failure::{Failure, codes};
use crate::list::{NetworkList, PluginConfig};
use crate::netns_id::Look;
use crate::plugin::{Plugin, Surroundings};
use crate::proto::v1;
use crate::subject::Subject;

/// One verb for one list.
#[derive(Debug)]
pub(crate) struct Chain<'a> {
    pub(crate) list: &'a NetworkList,
    pub(crate) cache: &'a Cache,
    /// ADDs that are not finished.
    pub(crate) begun: &'a Cache,
    pub(crate) at: Surroundings<'a>,
    /// Which namespace is at a path.
    pub(crate) netns_id: Look,
}

impl Chain<'_> {
    /// DEL from the last plugin to the first, past errors. The cached result goes with the attachment.
    ///
    /// # Errors
    /// The first plugin's that failed.
    pub(crate) fn delete(&self) -> Result<(), Failure> {
        let known = self.cached().filter(|_| self.list.version >= Version::V0_4_0);
        self.take_down(known.as_ref().map(|cached| &cached.result))?;
        self.begun.remove(&self.list.name, self.at.subject)?;
        self.cache.remove(&self.list.name, self.at.subject)
    }

    /// CHECK.
    ///
    /// # Errors
    /// The first plugin's that finds something; code 1 for a list older than the verb, 3 for an attachment that is not known.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.list.version < Verb::Check.since() {
            let why = format!("config version {} does not allow CHECK", self.list.version);
            return Err(Failure::new(codes::VERSION, why));
        }
        if !self.list.is_checked {
            return Ok(());
        }
        let Some(known) = self.cached() else {
            let (network, Subject { container, ifname, .. }) = (&self.list.name, self.at.subject);
            let why = format!("{ifname} of {container} is not attached to {network}: no result is cached");
            return Err(Failure::new(codes::UNKNOWN_CONTAINER, why));
        };
        self.each(Verb::Check, Some(&known.result))
    }

    /// FINALIZE of those plugins that know it.
    ///
    /// # Errors
    /// The first plugin's that failed.
    pub(crate) fn finalize(&self) -> Result<(), Failure> {
        self.each_of_own(Verb::Finalize, self.cached().as_ref().map(|cached| &cached.result))
    }

    /// STATUS, from 1.1.0 on; an older list cannot ask.
    ///
    /// # Errors
    /// The first plugin's that would refuse.
    pub(crate) fn status(&self) -> Result<(), Failure> {
        if self.list.version < Verb::Status.since() { Ok(()) } else { self.each(Verb::Status, None) }
    }

    /// VALIDATE of those plugins that know it; the others have to be there.
    ///
    /// # Errors
    /// The first plugin's that finds something.
    pub(crate) fn validate(&self) -> Result<(), Failure> {
        for config in &self.list.plugins {
            self.find(config)?;
        }
        self.each_of_own(Verb::Validate, None)
    }

    /// What the first plugin says to CAPACITY.
    ///
    /// # Errors
    /// The plugin's.
    pub(crate) fn capacity(&self) -> Result<Vec<u8>, Failure> {
        self.list
            .plugins
            .first()
            .map_or(Ok(Vec::new()), |config| self.run(&self.find(config)?, Verb::Capacity, config, None))
    }

    /// INIT or DEINIT of those plugins that know it.
    ///
    /// # Errors
    /// The first plugin's that failed.
    pub(crate) fn shared(&self, verb: Verb) -> Result<(), Failure> {
        self.each_of_own(verb, None)
    }

    /// GC: attachments that are cached, or begun, and not listed are deleted, then each plugin looks for itself.
    ///
    /// # Errors
    /// The first failure, after all has been tried.
    pub(crate) fn collect(&self, valid: &[v1::Attachment]) -> Result<(), Failure> {
        if !self.list.is_collected {
            return Ok(());
        }
        let stays = |cached: &Cached| {
            valid.iter().any(|one| one.container_id == cached.container_id && one.ifname == cached.if_name)
        };
        let known = [self.cache, self.begun].into_iter().flat_map(|cache| cache.of_network(&self.list.name));
        let stale = known.filter(|cached| !stays(cached));
        let mut first = None;
        for cached in stale {
            first = first.or(self.delete_cached(&cached).err());
        }
        first = first.or(self.unmark_made().err());
        if self.list.version >= Verb::Gc.since() {
            let valid: Vec<Value> = valid
                .iter()
                .map(|one| json!({ "containerID": one.container_id, "ifname": one.ifname }))
                .collect();
            for config in &self.list.plugins {
                let more =
                    [("cni.dev/valid-attachments", json!(valid)), ("cni.dev/attachments", json!(valid))];
                let given = config.given(self.list, &Map::new(), more);
                let done = self.find(config).and_then(|plugin| plugin.run(Verb::Gc, &given, &self.at));
                first = first.or(done.err());
            }
        }
        first.map_or(Ok(()), Err)
    }

    /// Removes marks beside results: no ADD is in the middle while this network is locked.
    fn unmark_made(&self) -> Result<(), Failure> {
        let begun = self.begun.of_network(&self.list.name);
        let mut made = begun.iter().map(Cached::subject);
        made.try_for_each(|subject| match self.cache.read(&self.list.name, &subject) {
            Some(_) => self.begun.remove(&self.list.name, &subject),
            None => Ok(()),
        })
    }

    /// Deletes an attachment of the network by the list that it was made with.
    pub(crate) fn delete_cached(&self, cached: &Cached) -> Result<(), Failure> {
        let (list, mut subject) = (cached.list()?, cached.subject());
        // The file may be anybody's that shares the cache: elsewhere there is nothing to be done.
        let netns = self.at.settings.namespace(&subject.netns).ok().flatten();
        subject.netns = netns.unwrap_or_default().to_string_lossy().into_owned();
        let at = Surroundings { subject: &subject, ..self.at };
        Chain { list: &list, at, ..*self }.delete()
    }

    pub(crate) fn cached(&self) -> Option<Cached> {
        self.cache.read(&self.list.name, self.at.subject)
    }

    /// DEL of all plugins.
    pub(crate) fn take_down(&self, result: Option<&Value>) -> Result<(), Failure> {
        let mut first = None;
        for config in self.list.plugins.iter().rev() {
            let done = self.find(config).and_then(|plugin| self.run(&plugin, Verb::Del, config, result));
            first = first.or(done.err());
        }
        first.map_or(Ok(()), Err)
    }

    pub(crate) fn each(&self, verb: Verb, result: Option<&Value>) -> Result<(), Failure> {
        self.list.plugins.iter().try_for_each(|config| {
            let plugin = self.find(config)?;
            self.run(&plugin, verb, config, result).map(drop)
        })
    }

    /// The same of shunt's plugins: no other project's program knows the verb.
    fn each_of_own(&self, verb: Verb, result: Option<&Value>) -> Result<(), Failure> {
        self.list.plugins.iter().try_for_each(|config| match self.find(config)? {
            plugin if plugin.is_own() => self.run(&plugin, verb, config, result).map(drop),
            _ => Ok(()),
        })
    }

    pub(crate) fn find(&self, config: &PluginConfig) -> Result<Plugin, Failure> {
        Plugin::find(&config.kind, self.at.settings)
    }

    pub(crate) fn run(
        &self,
        plugin: &Plugin,
        verb: Verb,
        config: &PluginConfig,
        result: Option<&Value>,
    ) -> Result<Vec<u8>, Failure> {
        let more = result.map(|result| ("prevResult", result.clone()));
        plugin.run(verb, &config.given(self.list, &self.at.subject.capability_args, more), &self.at)
    }
}
