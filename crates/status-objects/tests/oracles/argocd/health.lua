local said = {}
if obj.status ~= nil then
  for _, condition in ipairs(obj.status.conditions or {}) do
    said[condition.type] = condition
  end
end
if said.Stalled ~= nil then
  return {status = "Degraded", message = said.Stalled.message}
end
if said.Maintenance ~= nil then
  return {status = "Suspended", message = "people maintain the objects"}
end
if said.Reconciling ~= nil then
  return {status = "Progressing", message = said.Reconciling.message}
end
if obj.status ~= nil and obj.status.enabled == false then
  return {status = "Healthy", message = "the module is off"}
end
if said.Ready ~= nil and said.Ready.status == "True" then
  return {status = "Healthy", message = said.Ready.message}
end
return {status = "Progressing", message = "the operator has not told its state yet"}
