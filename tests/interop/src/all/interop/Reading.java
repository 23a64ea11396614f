package interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.sql.Timestamp;
import java.time.LocalDateTime;
import java.util.Comparator;
import java.util.Date;
import java.util.Map;
import java.util.TreeMap;
import org.springframework.batch.core.DefaultJobKeyGenerator;
import org.springframework.batch.core.JobExecution;
import org.springframework.batch.core.JobInstance;
import org.springframework.batch.core.StepExecution;
import org.springframework.batch.item.ExecutionContext;

/** The view of Spring Batch, as JSON. */
final class Reading {
    private final Repository repository;

    Reading(Repository repository) {
        this.repository = repository;
    }

    /** All executions, in the order of their ids. */
    JsonNode everything() {
        Map<Long, JsonNode> executions = new TreeMap<>();
        var explorer = repository.explorer;
        for (String job : explorer.getJobNames()) {
            for (JobInstance instance : explorer.getJobInstances(job, 0, Integer.MAX_VALUE)) {
                for (JobExecution execution : explorer.getJobExecutions(instance)) {
                    // By its id the explorer adds the contexts.
                    executions.put(execution.getId(), execution(explorer.getJobExecution(execution.getId())));
                }
            }
        }
        ArrayNode all = Main.JSON.createArrayNode();
        executions.values().forEach(all::add);
        return all;
    }

    private JsonNode execution(JobExecution execution) {
        ObjectNode shown = Main.JSON.createObjectNode();
        shown.put("execution", execution.getId());
        shown.put("version", execution.getVersion());
        shown.put("instance", execution.getJobInstance().getInstanceId());
        shown.put("job", execution.getJobInstance().getJobName());
        // Spring Batch writes the key and never reads it: this is the one by which it would look for the instance.
        shown.put("key", new DefaultJobKeyGenerator().generateKey(execution.getJobParameters()));
        Repository.show(execution.getJobParameters(), shown.putArray("parameters"));
        shown.put("status", execution.getStatus().name());
        shown.put("exitStatus", execution.getExitStatus().getExitCode());
        shown.put("exitMessage", execution.getExitStatus().getExitDescription());
        time(shown, "created", execution.getCreateTime());
        time(shown, "started", execution.getStartTime());
        time(shown, "ended", execution.getEndTime());
        time(shown, "lastUpdated", execution.getLastUpdated());
        shown.put("definition", Repository.definition(execution));
        shown.set("context", context(execution.getExecutionContext()));
        ObjectNode classes = shown.putObject("classes");
        execution.getExecutionContext().entrySet()
                .forEach(entry -> classes.put(entry.getKey(), entry.getValue().getClass().getSimpleName()));
        ArrayNode steps = shown.putArray("steps");
        execution.getStepExecutions().stream()
                .sorted(Comparator.comparing(StepExecution::getId))
                .forEach(step -> steps.add(step(step)));
        return shown;
    }

    private JsonNode step(StepExecution step) {
        ObjectNode shown = Main.JSON.createObjectNode();
        shown.put("step", step.getStepName());
        shown.put("stepExecution", step.getId());
        shown.put("version", step.getVersion());
        shown.put("status", step.getStatus().name());
        shown.put("exitStatus", step.getExitStatus().getExitCode());
        shown.put("exitMessage", step.getExitStatus().getExitDescription());
        if (Repository.created(step) != null) {
            time(shown, "created", Repository.created(step));
        }
        time(shown, "started", step.getStartTime());
        time(shown, "ended", step.getEndTime());
        time(shown, "lastUpdated", step.getLastUpdated());
        ObjectNode counters = shown.putObject("counters");
        counters.put("reads", step.getReadCount());
        counters.put("writes", step.getWriteCount());
        counters.put("filters", step.getFilterCount());
        counters.put("commits", step.getCommitCount());
        counters.put("rollbacks", step.getRollbackCount());
        counters.put("readSkips", step.getReadSkipCount());
        counters.put("processSkips", step.getProcessSkipCount());
        counters.put("writeSkips", step.getWriteSkipCount());
        shown.set("context", context(step.getExecutionContext()));
        return shown;
    }

    private static void time(ObjectNode shown, String name, Date time) {
        shown.put(name, time == null ? null : time.getTime());
    }

    /** Shows a time of Spring Batch 5 and later, which converts it likewise for its columns. */
    private static void time(ObjectNode shown, String name, LocalDateTime time) {
        time(shown, name, time == null ? null : Timestamp.valueOf(time));
    }

    private static JsonNode context(ExecutionContext context) {
        ObjectNode shown = Main.JSON.createObjectNode();
        context.entrySet().forEach(entry -> shown.set(entry.getKey(), Main.JSON.valueToTree(entry.getValue())));
        return shown;
    }
}
