package interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.Map;
import org.springframework.batch.core.JobParameter;
import org.springframework.batch.core.JobParameters;

/** Job parameters from JSON and back: name, type, value (of a date its milliseconds), identifying. */
final class Parameters {
    private Parameters() {}

    static JobParameters of(JsonNode all) {
        Map<String, JobParameter> parameters = new LinkedHashMap<>();
        for (JsonNode one : all) {
            parameters.put(one.get("name").asText(), parameter(one));
        }
        return new JobParameters(parameters);
    }

    private static JobParameter parameter(JsonNode one) {
        JsonNode value = one.get("value");
        boolean identifying = one.get("identifying").asBoolean();
        if (value.isNull()) {
            switch (one.get("type").asText()) {
                case "LONG":
                    return new JobParameter((Long) null, identifying);
                case "DOUBLE":
                    return new JobParameter((Double) null, identifying);
                case "DATE":
                    return new JobParameter((Date) null, identifying);
                default:
                    return new JobParameter((String) null, identifying);
            }
        }
        switch (one.get("type").asText()) {
            case "LONG":
                return new JobParameter(value.asLong(), identifying);
            case "DOUBLE":
                return new JobParameter(value.asDouble(), identifying);
            case "DATE":
                return new JobParameter(new Date(value.asLong()), identifying);
            default:
                return new JobParameter(value.asText(), identifying);
        }
    }

    static JsonNode shown(String name, JobParameter parameter) {
        ObjectNode one = Main.JSON.createObjectNode();
        one.put("name", name);
        one.put("type", parameter.getType().name());
        Object value = parameter.getValue();
        one.set("value", Main.JSON.valueToTree(value instanceof Date ? ((Date) value).getTime() : value));
        one.put("identifying", parameter.isIdentifying());
        return one;
    }
}
