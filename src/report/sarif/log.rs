//! The part of SARIF 2.1.0 (OASIS) that we write, under its own names.

use serde::Serialize;

use super::super::numbers::Numbers;

#[derive(Serialize)]
pub(in super::super) struct Log<'a> {
    #[serde(rename = "$schema")]
    pub schema: &'static str,
    pub version: &'static str,
    pub runs: [Run<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct Run<'a> {
    pub tool: Tool,
    pub invocations: Vec<Invocation>,
    pub original_uri_base_ids: BaseIds,
    pub automation_details: Automation,
    pub column_kind: &'static str,
    pub results: Vec<SarifResult<'a>>,
}

#[derive(Serialize)]
pub(in super::super) struct Tool {
    pub driver: Driver,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct Driver {
    pub name: &'static str,
    pub version: &'static str,
    pub semantic_version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub information_uri: Option<&'static str>,
    pub rules: Vec<Descriptor>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct Descriptor {
    pub id: &'static str,
    pub name: String,
    pub short_description: Text,
    pub full_description: Text,
    pub help: Help,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help_uri: Option<String>,
    pub default_configuration: Configuration,
    pub properties: RuleProperties,
}

#[derive(Serialize)]
pub(in super::super) struct Help {
    pub text: String,
    pub markdown: &'static str,
}

#[derive(Serialize)]
pub(in super::super) struct Configuration {
    pub level: &'static str,
}

#[derive(Serialize)]
pub(in super::super) struct RuleProperties {
    pub tags: [String; 3],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<&'static str>,
    #[serde(rename = "problem.severity")]
    pub severity: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct Invocation {
    pub execution_successful: bool,
    #[serde(rename = "toolExecutionNotifications", skip_serializing_if = "Vec::is_empty")]
    pub notifications: Vec<Notification>,
}

#[derive(Serialize)]
pub(in super::super) struct Notification {
    pub level: &'static str,
    pub message: Text,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
}

#[derive(Serialize)]
pub(in super::super) struct BaseIds {
    #[serde(rename = "%SRCROOT%")]
    pub source_root: BaseId,
}

#[derive(Serialize)]
pub(in super::super) struct BaseId {
    pub description: Text,
}

#[derive(Serialize)]
pub(in super::super) struct Automation {
    pub id: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct SarifResult<'a> {
    pub rule_id: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule_index: Option<usize>,
    pub level: &'static str,
    pub message: Message,
    pub locations: [Location; 1],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related_locations: Vec<Location>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub code_flows: Vec<CodeFlow>,
    pub partial_fingerprints: Fingerprints,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fixes: Vec<SarifFix>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suppressions: Option<[Suppression<'a>; 1]>,
    pub properties: Numbers<'a>,
}

#[derive(Serialize)]
pub(in super::super) struct Text {
    pub text: String,
}

impl Text {
    pub fn new(text: impl Into<String>) -> Text {
        Text { text: text.into() }
    }
}

#[derive(Serialize)]
pub(in super::super) struct Message {
    pub text: String,
    pub markdown: String,
}

#[derive(Serialize, Default)]
pub(in super::super) struct Location {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Text>,
    #[serde(rename = "physicalLocation")]
    pub physical: Physical,
    #[serde(rename = "logicalLocations", skip_serializing_if = "Vec::is_empty")]
    pub logical: Vec<Logical>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct Logical {
    pub fully_qualified_name: String,
    pub kind: &'static str,
}

#[derive(Serialize, Default)]
pub(in super::super) struct Physical {
    #[serde(rename = "artifactLocation")]
    pub artifact: Artifact,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<Region>,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct Artifact {
    pub uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri_base_id: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct Region {
    pub start_line: u32,
    pub start_column: u32,
    pub end_line: u32,
    pub end_column: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippet: Option<Text>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct CodeFlow {
    pub thread_flows: [ThreadFlow; 1],
}

#[derive(Serialize)]
pub(in super::super) struct ThreadFlow {
    pub locations: Vec<FlowLocation>,
}

#[derive(Serialize)]
pub(in super::super) struct FlowLocation {
    pub location: Location,
    pub importance: &'static str,
}

#[derive(Serialize)]
pub(in super::super) struct Fingerprints {
    #[serde(rename = "primaryLocationLineHash")]
    pub line_hash: String,
    #[serde(rename = "cudalint/v1")]
    pub own: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct SarifFix {
    pub description: Text,
    pub artifact_changes: Vec<ArtifactChange>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct ArtifactChange {
    #[serde(rename = "artifactLocation")]
    pub artifact: Artifact,
    pub replacements: Vec<Replacement>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct Replacement {
    pub deleted_region: Region,
    pub inserted_content: Text,
}

#[derive(Serialize)]
pub(in super::super) struct Suppression<'a> {
    pub kind: &'static str,
    pub justification: &'a str,
}
