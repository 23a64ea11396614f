package interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.TimeZone;
import org.springframework.batch.core.DefaultJobKeyGenerator;
import org.springframework.batch.core.JobExecution;

/**
 * Does what it is told with a repository, by the classes of Spring Batch: each line of the input is an array of JSON, a verb,
 * the URL of a database and what the verb needs. It answers with a line: {@code =} and what it found, or {@code !} and the
 * exception. What a running job says has a {@code *} in front.
 */
public final class Main {
    static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    private Main() {}

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode words = JSON.readTree(line);
            try {
                OUT.println("=" + JSON.writeValueAsString(answer(words)));
            } catch (Exception problem) {
                OUT.println("!" + text(problem));
            }
        }
    }

    static void say(String what) {
        OUT.println("*" + what);
    }

    /** Returns an exception and its causes, in one line. */
    static String text(Throwable problem) {
        String text = problem.getClass().getSimpleName() + ": " + problem;
        for (Throwable cause = problem.getCause(); cause != null; cause = cause.getCause()) {
            text += ", caused by " + cause;
        }
        return text.replace('\n', ' ');
    }

    private static JsonNode answer(JsonNode words) throws Exception {
        // The last word may be about the contexts.
        boolean opaque = words.get(words.size() - 1).asText().equals("opaque");
        Repository repository = new Repository(words.get(1).asText(), opaque);
        switch (words.get(0).asText()) {
            // Makes the tables, by Spring Batch's own statements.
            case "make":
                repository.make();
                return JSON.nullNode();
            // Migrates the tables of the version before this one, likewise.
            case "migrate":
                repository.migrate(Repository.MIGRATION);
                return JSON.nullNode();
            // Everything that there is.
            case "read":
                return new Reading(repository).everything();
            // The JOB_KEY of an instance with these parameters.
            case "key":
                return JSON.getNodeFactory().textNode(new DefaultJobKeyGenerator().generateKey(Parameters.of(words.get(2))));
            // What the repository says of a job with these parameters, as a launcher asks it.
            case "last":
                return ended(repository.jobs.getLastJobExecution(words.get(2).asText(), Parameters.of(words.get(3))));
            // Runs a job with these parameters to its end.
            case "run":
                return ended(repository.run(words.get(2).asText(), Parameters.of(words.get(3))));
            // Launches this many instances of a job, on this many threads.
            case "launches":
                return new Launches(repository, words.get(2).asText())
                        .all(words.get(3).asInt(), words.get(4).asInt(), words.get(5).asText());
            // Resumes an execution, to its end.
            case "restart":
                return ended(repository.restart(words.get(2).asLong()));
            case "stop":
                return JSON.getNodeFactory().booleanNode(repository.stop(words.get(2).asLong()));
            // In each time zone, the JOB_KEYs of instances with a date, given by its milliseconds, and the name of the zone.
            case "zones":
                return keysInZones(words.get(2));
            // The milliseconds of a TIMESTAMP, as the driver reads it.
            case "time":
                return JSON.getNodeFactory().numberNode(repository.time(words.get(2).asText()));
            default:
                throw new IllegalArgumentException("there is no verb " + words.get(0));
        }
    }

    private static JsonNode keysInZones(JsonNode times) throws Exception {
        ObjectNode zones = JSON.createObjectNode();
        TimeZone usual = TimeZone.getDefault();
        for (String zone : TimeZone.getAvailableIDs()) {
            TimeZone.setDefault(TimeZone.getTimeZone(zone));
            for (JsonNode time : times) {
                ArrayNode parameters = JSON.createArrayNode();
                parameters.addObject().put("name", "zone").put("type", "STRING").put("value", zone);
                parameters.addObject().put("name", "date").put("type", "DATE").set("value", time);
                parameters.forEach(one -> ((ObjectNode) one).put("identifying", true));
                zones.withArray(zone).add(new DefaultJobKeyGenerator().generateKey(Parameters.of(parameters)));
            }
        }
        TimeZone.setDefault(usual);
        return zones;
    }

    private static JsonNode ended(JobExecution execution) {
        if (execution == null) {
            return JSON.nullNode();
        }
        ObjectNode ended = JSON.createObjectNode();
        ended.put("execution", execution.getId());
        ended.put("instance", execution.getJobInstance().getInstanceId());
        ended.put("status", execution.getStatus().name());
        return ended;
    }
}
