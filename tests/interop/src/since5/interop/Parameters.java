package interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Date;
import java.util.Map;
import org.springframework.batch.core.JobParameters;
import org.springframework.batch.core.JobParametersBuilder;
import org.springframework.batch.core.converter.DefaultJobParametersConverter;

/**
 * Job parameters from JSON and back: name, type, value, identifying. A type is one of Spring Batch 4.3, or else the name of a
 * class. The value of a {@code DATE} is its milliseconds, that of another class the text in the column PARAMETER_VALUE.
 */
final class Parameters {
    private static final Map<String, Class<?>> TYPES =
            Map.of("STRING", String.class, "LONG", Long.class, "DOUBLE", Double.class, "DATE", Date.class);

    private static final Column COLUMN = new Column();

    private Parameters() {}

    static JobParameters of(JsonNode all) throws ClassNotFoundException {
        JobParametersBuilder parameters = new JobParametersBuilder();
        for (JsonNode one : all) {
            String type = one.get("type").asText();
            Class<?> named = TYPES.containsKey(type) ? TYPES.get(type) : Class.forName(type);
            add(parameters, one, named);
        }
        return parameters.toJobParameters();
    }

    private static <T> void add(JobParametersBuilder parameters, JsonNode one, Class<T> type) {
        String name = one.get("name").asText();
        JsonNode value = one.get("value");
        if (value.isNull()) {
            throw new IllegalArgumentException("parameter `" + name + "` is null, which Spring Batch allows only until 4.3");
        }
        boolean isDate = one.get("type").asText().equals("DATE");
        Object converted = isDate ? new Date(value.asLong()) : COLUMN.value(value.asText(), type);
        parameters.addJobParameter(name, type.cast(converted), type, one.get("identifying").asBoolean());
    }

    static JsonNode shown(String name, Class<?> type, Object value, boolean identifying) {
        ObjectNode one = Main.JSON.createObjectNode();
        one.put("name", name);
        one.put("type", type.getName());
        one.put("value", COLUMN.text(value));
        TYPES.forEach((known, of) -> {
            if (of == type) {
                one.put("type", known);
                one.set("value", Main.JSON.valueToTree(value instanceof Date date ? date.getTime() : value));
            }
        });
        one.put("identifying", identifying);
        return one;
    }

    /** The conversions of the column, which Spring Batch's converter has too. */
    private static final class Column extends DefaultJobParametersConverter {
        Object value(String text, Class<?> type) {
            return conversionService.convert(text, type);
        }

        String text(Object value) {
            return conversionService.convert(value, String.class);
        }
    }
}
