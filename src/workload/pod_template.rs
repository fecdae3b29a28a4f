//! A pod template as its user wrote it, reduced to its shape.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::error::TemplateError;
use super::field::Field;
use crate::resources::requests::{PodSpecLite, is_extended, is_huge_page, is_pod_level, template_request};
use crate::resources::shape::{NodeSelectorTerm, NodeTaintEffect, Operator, Requirement, Toleration};
use crate::resources::{Amounts, Names, Quantity, Shape};

/// The shape of a pod template (`{metadata, spec}`).
///
/// Preferred affinities and `ScheduleAnyway` only score, so they are no part of it. A scheduler of another name is taken for a profile of
/// kube-scheduler, whose filters are the same.
pub(crate) fn shape(template: &Field<'_>) -> Result<Shape, TemplateError> {
    let spec = template.get("spec")?;
    if spec.entries()?.is_empty() {
        return Err(spec.invalid("a pod spec"));
    }
    let node_name = spec.get("nodeName")?;
    if node_name.text()?.is_some_and(|name| !name.is_empty()) {
        return Err(node_name.invalid(
            "no node name (it would bypass the worker's scheduler), but a nodeSelector on kubernetes.io/hostname",
        ));
    }
    check_resources(&spec)?;
    let lite = spec
        .value()
        .map_or_else(|| Ok(PodSpecLite::default()), PodSpecLite::deserialize)
        .map_err(|error| spec.invalid(&format!("a pod spec ({error})")))?;
    let selector: BTreeMap<String, String> = spec
        .get("nodeSelector")?
        .entries()?
        .into_iter()
        .map(|(key, value)| Ok((key.to_owned(), value.required_text()?.to_owned())))
        .collect::<Result<_, TemplateError>>()?;

    let mut uncounted = BTreeSet::new();
    let tolerations = tolerations(&spec.get("tolerations")?, &mut uncounted)?;
    note_uncounted(&spec, &mut uncounted)?;
    Ok(Shape {
        requests: Amounts::from_quantities(&template_request(&lite), &mut Names::default()),
        node_selector: selector.into_iter().collect(),
        node_affinity: node_affinity(&spec)?,
        tolerations,
        runtime_class: lite.runtime_class_name.filter(|name| !name.is_empty()),
        uncounted: uncounted.into_iter().map(str::to_owned).collect(),
    })
}

/// Rules that the scheduler filters by and that are not counted yet.
fn note_uncounted(spec: &Field<'_>, uncounted: &mut BTreeSet<&'static str>) -> Result<(), TemplateError> {
    const PRESENT: &[(&[&str], &str)] = &[
        (
            &[
                "affinity",
                "podAffinity",
                "requiredDuringSchedulingIgnoredDuringExecution",
            ],
            "required pod affinity",
        ),
        (
            &[
                "affinity",
                "podAntiAffinity",
                "requiredDuringSchedulingIgnoredDuringExecution",
            ],
            "required pod anti-affinity",
        ),
        (&["resourceClaims"], "resource claims"),
        (&["schedulingGates"], "scheduling gates"),
    ];
    for (path, word) in PRESENT {
        if !spec.at(path)?.items()?.is_empty() {
            uncounted.insert(word);
        }
    }
    // Their forms changed from release to release; that they are there is enough.
    for (name, word) in [
        ("schedulingGroup", "scheduling group"),
        ("workloadRef", "workload reference"),
    ] {
        if spec.get(name)?.value().is_some() {
            uncounted.insert(word);
        }
    }
    for constraint in spec.get("topologySpreadConstraints")?.items()? {
        let when = constraint.get("whenUnsatisfiable")?;
        match when.required_text()? {
            "DoNotSchedule" => {
                uncounted.insert("topology spread with DoNotSchedule");
            }
            "ScheduleAnyway" => {}
            _ => return Err(when.invalid("DoNotSchedule or ScheduleAnyway")),
        }
    }
    // On the host's network every port of a container is one of the host's.
    let on_host = spec.get("hostNetwork")?.flag()?.unwrap_or(false);
    for list in ["containers", "initContainers"] {
        for container in spec.get(list)?.items()? {
            for port in container.get("ports")?.items()? {
                if on_host || port.get("hostPort")?.count()?.unwrap_or(0) > 0 {
                    uncounted.insert("host ports");
                }
            }
        }
    }
    for volume in spec.get("volumes")?.items()? {
        for (source, _) in volume.entries()? {
            match source {
                "persistentVolumeClaim" => uncounted.insert("persistent volume claims"),
                "ephemeral" => uncounted.insert("ephemeral volumes"),
                // Zones, attach limits and exclusive use of these are filtered by.
                "awsElasticBlockStore"
                | "azureDisk"
                | "cinder"
                | "gcePersistentDisk"
                | "iscsi"
                | "portworxVolume"
                | "rbd"
                | "vsphereVolume" => uncounted.insert("disks named in the template"),
                _ => false,
            };
        }
    }
    Ok(())
}

fn tolerations(list: &Field<'_>, uncounted: &mut BTreeSet<&'static str>) -> Result<Vec<Toleration>, TemplateError> {
    let mut tolerations = BTreeSet::new();
    for item in list.items()? {
        let (key, operator, value, effect) = (
            item.get("key")?,
            item.get("operator")?,
            item.get("value")?,
            item.get("effect")?,
        );
        let text = |field: &Field<'_>| field.text().map(|text| text.unwrap_or_default().to_owned());
        let exists = match operator.text()?.unwrap_or_default() {
            "" | "Equal" => false,
            "Exists" => true,
            "Gt" | "Lt" => {
                uncounted.insert("tolerations with Gt or Lt");
                continue;
            }
            _ => return Err(operator.invalid("Equal or Exists")),
        };
        let toleration = Toleration {
            key: text(&key)?,
            exists,
            value: text(&value)?,
            effect: match effect.text()?.unwrap_or_default() {
                "" => None,
                "NoSchedule" => Some(NodeTaintEffect::NoSchedule),
                "PreferNoSchedule" => Some(NodeTaintEffect::PreferNoSchedule),
                "NoExecute" => Some(NodeTaintEffect::NoExecute),
                _ => return Err(effect.invalid("NoSchedule, PreferNoSchedule, NoExecute or nothing")),
            },
        };
        if toleration.exists && !toleration.value.is_empty() {
            return Err(value.invalid("no value, since the operator is Exists"));
        }
        if !toleration.exists && toleration.key.is_empty() {
            return Err(operator.invalid("Exists, since the toleration has no key"));
        }
        tolerations.insert(toleration);
    }
    Ok(tolerations.into_iter().collect())
}

fn node_affinity(spec: &Field<'_>) -> Result<Vec<NodeSelectorTerm>, TemplateError> {
    let required = spec.at(&[
        "affinity",
        "nodeAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
    ])?;
    if required.value().is_none() {
        return Ok(Vec::new());
    }
    let list = required.get("nodeSelectorTerms")?;
    let mut terms = BTreeSet::new();
    for term in list.items()? {
        let mut expressions = term
            .get("matchExpressions")?
            .items()?
            .iter()
            .map(requirement)
            .collect::<Result<Vec<_>, _>>()?;
        let mut fields = Vec::new();
        for item in term.get("matchFields")?.items()? {
            let field = requirement(&item)?;
            if field.key != "metadata.name" {
                return Err(item.get("key")?.invalid("metadata.name"));
            }
            if !matches!(field.operator, Operator::In | Operator::NotIn) || field.values.len() != 1 {
                return Err(item.invalid("operator In or NotIn with exactly one value"));
            }
            fields.push(field);
        }
        expressions.sort();
        fields.sort();
        terms.insert(NodeSelectorTerm { expressions, fields });
    }
    if terms.is_empty() {
        return Err(list.invalid("one term or more"));
    }
    Ok(terms.into_iter().collect())
}

fn requirement(item: &Field<'_>) -> Result<Requirement, TemplateError> {
    let (operator, list) = (item.get("operator")?, item.get("values")?);
    let mut values: Vec<String> = list.texts()?.into_iter().map(str::to_owned).collect();
    values.sort();
    values.dedup();
    let (operator, fits, right) = match operator.required_text()? {
        "In" => (Operator::In, !values.is_empty(), "one value or more"),
        "NotIn" => (Operator::NotIn, !values.is_empty(), "one value or more"),
        "Exists" => (
            Operator::Exists,
            values.is_empty(),
            "no values, since the operator is Exists",
        ),
        "DoesNotExist" => (
            Operator::DoesNotExist,
            values.is_empty(),
            "no values, since the operator is DoesNotExist",
        ),
        "Gt" => (Operator::Gt, values.len() == 1, "exactly one value"),
        "Lt" => (Operator::Lt, values.len() == 1, "exactly one value"),
        _ => return Err(operator.invalid("In, NotIn, Exists, DoesNotExist, Gt or Lt")),
    };
    if !fits {
        return Err(list.invalid(right));
    }
    Ok(Requirement {
        key: item.get("key")?.required_text()?.to_owned(),
        operator,
        values,
    })
}

/// Every API server refuses what is refused here; said on the manager it is one clear sentence and not an error per worker.
fn check_resources(spec: &Field<'_>) -> Result<(), TemplateError> {
    let containers = spec.get("containers")?;
    if containers.items()?.is_empty() {
        return Err(containers.invalid("one container or more"));
    }
    for list in [containers, spec.get("initContainers")?] {
        for container in list.items()? {
            check_list(&container.get("resources")?, true)?;
        }
    }
    check_list(&spec.get("resources")?, false)?;
    for (name, amount) in spec.get("overhead")?.entries()? {
        quantity(name, &amount)?;
    }
    Ok(())
}

fn check_list(resources: &Field<'_>, of_container: bool) -> Result<(), TemplateError> {
    let mut limits = BTreeMap::new();
    for (name, field) in resources.get("limits")?.entries()? {
        limits.insert(name, quantity(name, &field)?);
        if !of_container && !is_pod_level(name) {
            return Err(field.invalid("nothing: only cpu, memory and huge pages can be set for a pod as a whole"));
        }
    }
    for (name, field) in resources.get("requests")?.entries()? {
        let request = quantity(name, &field)?;
        if !of_container && !is_pod_level(name) {
            return Err(field.invalid("nothing: only cpu, memory and huge pages can be set for a pod as a whole"));
        }
        match limits.get(name) {
            Some(limit) if request > *limit => return Err(field.invalid(&format!("at most the limit, {limit}"))),
            Some(limit) if request != *limit && cannot_overcommit(name) => {
                return Err(field.invalid(&format!(
                    "the same as the limit, {limit}: {name} cannot be overcommitted"
                )));
            }
            None if of_container && cannot_overcommit(name) => {
                return Err(field.invalid(&format!(
                    "a request with an equal limit: {name} cannot be overcommitted"
                )));
            }
            _ => {}
        }
    }
    Ok(())
}

fn cannot_overcommit(name: &str) -> bool {
    is_extended(name) || is_huge_page(name)
}

fn quantity(name: &str, field: &Field<'_>) -> Result<Quantity, TemplateError> {
    let read = field
        .value()
        .map_or(Ok(Quantity::ZERO), Quantity::from_json)
        .map_err(|_| field.invalid("a quantity such as 500m, 1.5, 64Gi or 8"))?;
    if read.is_negative() {
        return Err(field.invalid("0 or more"));
    }
    if is_extended(name) && !read.is_whole() {
        return Err(field.invalid(&format!("a whole number: {name} cannot be divided")));
    }
    Ok(read)
}

#[cfg(test)]
mod tests;
