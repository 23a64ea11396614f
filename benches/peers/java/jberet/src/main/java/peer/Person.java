package peer;

import java.util.HashMap;
import java.util.Locale;
import java.util.Map;

/** A row of the input and of the output, as the readers and writers of jberet-support take it. */
final class Person {
    private Person() {}

    /** Returns the row of a number, as it is in the input. */
    static Map<String, Object> number(long id) {
        Map<String, Object> person = new HashMap<>();
        person.put("id", id);
        person.put("first", "First" + id);
        person.put("last", "Last" + id);
        person.put("email", "first" + id + ".last" + id + "@example.com");
        person.put("amount", (id % 100_000) / 100.0);
        person.put("date", String.format("2026-11-%02d", id % 28 + 1));
        return person;
    }

    /** The work of every processor. */
    static Map<String, Object> processed(Map<String, Object> person) {
        person.put("last", ((String) person.get("last")).toUpperCase(Locale.ROOT));
        person.put("amount", Math.round((Double) person.get("amount") * 110.0) / 100.0);
        return person;
    }
}
